"""The steps of :class:`jaxarc.experts.painter.Painter`: targets and search, copies, boxes, masks, points."""
