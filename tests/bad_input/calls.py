"""Calls of public functions with a wrong type, shape, dtype or range, and how each is refused.

A row is a line of Python, the class of the error, and the names and values that its message must hold. The names in
the calls are those of :mod:`bad_input.things`, besides the called functions.
"""

from typing import Final, NamedTuple


class BadCall(NamedTuple):
    """A call that is refused."""

    call: str
    error: str  # the class
    named: tuple[str, ...]  # names and values in the message


CALLS: Final[dict[str, tuple[BadCall, ...]]] = {
    "The environment": (
        BadCall('make("arc-agi-3")', "UnknownDatasetError", ("arc-agi-3",)),
        BadCall("get_operation_name(42)", "ValueError", ("42",)),
        BadCall('make("arc-agi-1/training", max_episod_steps=7)', "UnknownFieldError", ("max_episod_steps",)),
        BadCall('make(tasks, tasks=["three"])', "UnknownTaskError", ("three",)),
        BadCall('make(tasks, tasks={"one": -1.0})', "ValueError", ("one", "-1.0")),
        BadCall("make(tasks, max_grid_height=1)", "ValueError", ("max_grid_height", "2x2", "1x30")),
        BadCall('make("procedural/gravity", tasks=["one"])', "ValueError", ("tasks",)),
        BadCall("make(5)", "TypeError", ("5",)),
        BadCall("make(tasks, config={})", "TypeError", ("config",)),
        BadCall("EnvParams(buffer, [1.0], config)", "TypeError", ("uniform_weights",)),
        BadCall("EnvParams(buffer, jnp.ones(2, jnp.int32), config)", "TypeError", ("int32",)),
        BadCall("EnvParams(buffer, jnp.zeros(2), config)", "ValueError", ("weights must",)),
        BadCall("EnvParams(buffer, -jnp.ones(2), config)", "ValueError", ("weights must",)),
        BadCall("EnvParams(buffer, jnp.array([1.0, np.nan]), config)", "ValueError", ("weights must",)),
        BadCall("EnvParams(buffer, jnp.ones(3), config)", "ValueError", ("(2,)", "(3,)")),
        BadCall(
            "EnvParams(buffer, jnp.ones(2), config.with_fields(max_grid_width=4))", "ValueError", ("(2, 2)", "(2, 4)")
        ),
        BadCall("EnvParams(task, jnp.ones(1), config)", "TypeError", ("TaskBuffer",)),
        BadCall("EnvParams(buffer, jnp.ones(2), {})", "TypeError", ("TaskBuffer",)),
        BadCall("env.reset(0, params)", "TypeError", ("PRNGKey",)),
        BadCall("env.reset(key, config)", "TypeError", ("EnvParams", "JaxArcConfig")),
        BadCall("env.reset(key, params, task_index=2)", "IndexError", ("task_index", "2")),
        BadCall("env.reset(key, params, task_index=0.5)", "TypeError", ("task_index", "0.5")),
        BadCall("env.reset(key, params, pair_index=7)", "IndexError", ("pair_index", "7")),
        BadCall("env.step(state, point, params)", "TypeError", ("env.step", "env.reset")),
        BadCall("env.step(env_state, (0, 1, 1), params)", "TypeError", ("PointAction",)),
        BadCall("env.step(env_state, bbox, params)", "TypeError", ("BboxAction",)),
        BadCall("env.step(env_state, PointAction(42, 0, 0), params)", "EquinoxRuntimeError", ("42",)),
        BadCall("env.action_space(config)", "TypeError", ("config",)),
        BadCall("env.observation_space(None)", "TypeError", ("EnvParams",)),
        BadCall("arc_reset(0, config)", "TypeError", ("PRNGKey",)),
        BadCall("arc_reset(None, config)", "TypeError", ("PRNGKey",)),
        BadCall("arc_reset(jnp.zeros(2, jnp.int32), config)", "TypeError", ("PRNGKey", "int32(2,)")),
        BadCall("arc_reset(jax.random.split(key, 3), config)", "TypeError", ("(3,)", "batch_reset")),
        BadCall("arc_reset(jax.random.split(jax.random.PRNGKey(0), 3), config)", "TypeError", ("(3,)", "batch_reset")),
        BadCall("arc_reset(key, {})", "TypeError", ("JaxArcConfig.from_hydra", "dict")),
        BadCall("arc_reset(key, config, raw_task)", "TypeError", ("task_data", "RawTask", "create_task")),
        BadCall("arc_reset(key, config, create_mock_task(5, 5))", "ValueError", ("max_grid_height", "5x5", "2x2")),
        BadCall("arc_step(state, (0, 1, 1), config)", "TypeError", ("PointAction",)),
        BadCall("arc_step(state, bbox, config)", "TypeError", ("config",)),
        BadCall("arc_step(state, PointAction(42, 0, 0), config)", "EquinoxRuntimeError", ("42",)),
        BadCall("arc_step(state, PointAction(0, 9, 0), config)", "EquinoxRuntimeError", ("9",)),
        BadCall("arc_step(state, PointAction([0, 1], [0, 0], [0, 0]), config)", "ValueError", ("batch_step",)),
        BadCall("arc_step(state, PointAction(35, 0, 0), config)", "EquinoxRuntimeError", ("35",)),
        BadCall("arc_step(env_state, point, config)", "TypeError", ("jaxarc.make", "env.step")),
        BadCall("arc_step(None, point, config)", "TypeError", ("arc_step",)),
        BadCall("arc_step(state, point, config.with_fields(max_grid_height=3))", "ValueError", ("3",)),
        BadCall("batch_reset(key, config)", "ValueError", ("batch_reset",)),
        BadCall("batch_reset(7, config)", "TypeError", ("7",)),
        BadCall("batch_step(state, PointAction([0, 1], [0, 0], [0, 0]), config)", "ValueError", ("batch_step",)),
        BadCall("batch_step(states, point, config)", "ValueError", ("batch_step",)),
        BadCall(
            "batch_step(states, PointAction([0, 1, 2], [0, 0, 0], [0, 0, 0]), config)",
            "ValueError",
            ("batch_step", "2"),
        ),
        BadCall("batch_step(states, PointAction([0, 1], [0, 9], [0, 0]), config)", "EquinoxRuntimeError", ("9",)),
        BadCall("PointAction(0.5, 0, 0)", "TypeError", ("operations and",)),
        BadCall("PointAction(2**32, 0, 0)", "OverflowError", ("operations and",)),
        BadCall('PointAction("fill", 0, 0)', "TypeError", ("operations and",)),
        BadCall("batch_step(states, PointAction([0, 1], [0], [0, 0]), config)", "ValueError", ("batch_step",)),
        BadCall("batch_step(None, points, config)", "TypeError", ("batch_step",)),
        BadCall("batch_step(states, (0, 1), config)", "TypeError", ("PointAction",)),
        BadCall("BboxAction(0, 0, None, 0, 0)", "TypeError", ("operations and",)),
        BadCall("BboxAction(0, 0, True, 0, 0)", "TypeError", ("operations and",)),
        BadCall("get_operation_name(42)", "ValueError", ("0..41", "42")),
        BadCall("MaskAction(0, [[1, 0], [0, 1]])", "TypeError", ("MaskAction",)),
        BadCall("MaskAction(0, None)", "TypeError", ("MaskAction",)),
        BadCall("MaskAction(0, np.ones((3, 3), bool)).to_selection_mask((2, 2))", "ValueError", ("3", "2")),
        BadCall('JAXErrorHandler.set_error_mode("ignore")', "ValueError", ("ignore", "default", "raise", "nan")),
        BadCall("JAXErrorHandler.validate_action((0, 1, 1), config)", "TypeError", ("PointAction",)),
        BadCall("JAXErrorHandler.validate_action(PointAction(0, 9, 0), config)", "EquinoxRuntimeError", ("9",)),
    ),
    "Tasks": (
        BadCall('load_tasks("arc-agi-1/trainin")', "UnknownDatasetError", ("arc-agi-1/trainin",)),
        BadCall('load_tasks("arc-agi-1/training:first zero")', "SubsetError", ("first", "zero")),
        BadCall('load_tasks("arc-agi-1/training:largest 3")', "SubsetError", ("3",)),
        BadCall('load_tasks("arc-agi-1/training@7")', "UnknownDatasetError", ("7",)),
        BadCall('load_tasks("./no/such/folder")', "UnknownDatasetError", ("./no/such/folder",)),
        BadCall("load_tasks(3)", "TypeError", ("3",)),
        BadCall('find_dataset("arc")', "UnknownDatasetError", ("arc",)),
        BadCall('register_dataset("arc-agi-1/mine", load=list)', "ValueError", ("arc-agi-1/mine",)),
        BadCall('read_json("no/such/file.json")', "FileNotFoundError", ("no/such/file.json",)),
        BadCall("read_json(broken_file, null_color=10)", "ValueError", ("null_color", "10")),
        BadCall("read_json(broken_file)", "TaskFormatError", ("JSON",)),
        BadCall("read_json(wrong_color_file)", "TaskFormatError", ("wrong_color",)),
        BadCall('find_problems("no/such/folder")', "FileNotFoundError", ("no/such/folder",)),
        BadCall('RawTask("", [], [])', "TaskFormatError", ("a task",)),
        BadCall('RawTask("mine", [], [])', "TaskFormatError", ("mine",)),
        BadCall('RawTask("mine", 3, 3)', "TaskFormatError", ("mine", "3")),
        BadCall('RawTask("mine", [([[0]], [[10]])], [([[0]], [[1]])])', "TaskFormatError", ("mine", "10")),
        BadCall('RawTask("mine", [([[0], [0, 0]], [[1]])], [([[0]], [[1]])])', "TaskFormatError", ("mine",)),
        BadCall('RawTask("mine", [(np.zeros((2, 2)), [[1]])], [([[0]], [[1]])])', "TaskFormatError", ("mine",)),
        BadCall('RawTask("mine", [(np.zeros((31, 1), int), [[1]])], [([[0]], [[1]])])', "TaskFormatError", ("mine",)),
        BadCall('TaskSet("none", ())', "ValueError", ("none",)),
        BadCall('TaskSet("twice", (raw_task, raw_task))', "ValueError", ("twice",)),
        BadCall('tasks.select(ids="one")', "ValueError", ("one",)),
        BadCall('tasks.select(ids=["three"])', "UnknownTaskError", ("three",)),
        BadCall('tasks.select(concept="Copy")', "SubsetError", ("Copy",)),
        BadCall("tasks.select(max_side=1)", "SubsetError", ("max_side",)),
        BadCall("tasks.select(first=0)", "SubsetError", ("select", "first")),
        BadCall("tasks.fit((1, 1))", "ValueError", ("tasks", "fit")),
        BadCall('tasks.fit((2, 2), too_large="ignore")', "ValueError", ("ignore", "too_large")),
        BadCall("tasks.on_canvas((0, 40))", "ValueError", ("40",)),
        BadCall("tasks.buffer((1, 1))", "ValueError", ("tasks",)),
        BadCall('tasks.raw_task("tow")', "UnknownTaskError", ("tow",)),
        BadCall('tasks.get_task_by_id("three")', "UnknownTaskError", ("three",)),
        BadCall("create_task([], [])", "TaskFormatError", ("task '(unnamed)':",)),
        BadCall("create_task([([[0]], [[10]])], [([[0]], [[1]])])", "TaskFormatError", ("10",)),
        BadCall("create_mock_task(0, 40)", "ValueError", ("40",)),
        BadCall("pack_tasks([], (2, 2))", "ValueError", ("a task",)),
        BadCall("pack_tasks([raw_task], (31, 3))", "ValueError", ("31",)),
        BadCall("pack_tasks([raw_task], (1, 1))", "ValueError", ("max_grid_height",)),
        BadCall("buffer_of_task(raw_task)", "TypeError", ("JaxArcTask",)),
        BadCall('register_task("")', "ValueError", ("a task",)),
        BadCall("register_task(3)", "ValueError", ("3",)),
        BadCall("task_id_of(10**6)", "UnknownTaskError", ("register_task",)),
        BadCall('task_index_of("nobody")', "UnknownTaskError", ("nobody",)),
        BadCall("uniform_weights(0)", "ValueError", ("num_tasks",)),
        BadCall('task_weights(tasks, ["three"])', "UnknownTaskError", ("three",)),
        BadCall('task_weights(tasks, {"one": float("nan")})', "ValueError", ("one", "nan")),
        BadCall("sample_task(0, jnp.ones(2))", "TypeError", ("PRNGKey",)),
        BadCall("buffer.with_symmetries(3)", "ValueError", ("3",)),
        BadCall(
            'procedural_tasks("procedural/gravitation", (5, 5))', "UnknownRuleError", ("procedural", "gravitation")
        ),
        BadCall('procedural_tasks("procedural/gravity", (0, 5))', "ValueError", ("5",)),
        BadCall("procedural_tasks([], (5, 5))", "ValueError", ("a mixture",)),
        BadCall('register_rule("gravity", 3)', "TypeError", ("3",)),
        BadCall('register_rule("mine", 3)', "TypeError", ("3",)),
        BadCall("sample_task_set(generator, key, 0)", "ValueError", ("num_tasks", "0")),
        BadCall("sample_task_set(tasks, key, 2)", "TypeError", ("tasks",)),
        BadCall("sample_task_set(generator, 0, 2)", "TypeError", ("PRNGKey",)),
        BadCall("start_curriculum(jnp.ones((2, 2)), CurriculumConfig())", "ValueError", ("2",)),
        BadCall("start_curriculum(jnp.ones(2), {})", "TypeError", ("CurriculumConfig",)),
    ),
    "Configuration": (
        BadCall(
            'JaxArcConfig(environment={"max_episode_steps": 7})', "ConfigValidationError", ("max_episode_steps", "7")
        ),
        BadCall("JaxArcConfig().with_fields(max_episod_steps=7)", "UnknownFieldError", ("max_episod_steps",)),
        BadCall(
            'JaxArcConfig().with_fields(selection_format="pixel")',
            "ConfigValidationError",
            ("pixel", "selection_format"),
        ),
        BadCall("JaxArcConfig().with_fields(max_episode_steps=0)", "ConfigValidationError", ("max_episode_steps",)),
        BadCall(
            "JaxArcConfig().with_fields(max_episode_steps=7.5)", "ConfigValidationError", ("max_episode_steps", "7.5")
        ),
        BadCall("JaxArcConfig().with_fields(max_episode_steps=2**40)", "ConfigValidationError", ("max_episode_steps",)),
        BadCall("JaxArcConfig().with_fields(max_grid_height=31)", "ConfigValidationError", ("max_grid_height", "31")),
        BadCall("JaxArcConfig().with_fields(gamma=1.5)", "ConfigValidationError", ("1.5",)),
        BadCall(
            'JaxArcConfig().with_fields(step_penalty=float("nan"))', "ConfigValidationError", ("nan", "step_penalty")
        ),
        BadCall('JaxArcConfig().with_fields(step_penalty="0.1")', "ConfigValidationError", ("0.1", "step_penalty")),
        BadCall(
            "JaxArcConfig().with_fields(allowed_operations=(3, 42))",
            "ConfigValidationError",
            ("allowed_operations", "42"),
        ),
        BadCall("JaxArcConfig().with_fields(allowed_operations=())", "ConfigValidationError", ("allowed_operations",)),
        BadCall(
            'JaxArcConfig().with_fields(mode="test", reveal_target=True)',
            "ConfigValidationError",
            ("test", "reveal_target"),
        ),
        BadCall("JaxArcConfig().replace(actions=ActionConfig())", "UnknownFieldError", ("JaxArcConfig", "actions")),
        BadCall(
            'JaxArcConfig.from_hydra({"environment": {"max_episod_steps": 7}})',
            "UnknownFieldError",
            ("max_episod_steps",),
        ),
        BadCall(
            'build(EnvironmentConfig, {"max_episode_steps": True})', "ConfigValidationError", ("max_episode_steps",)
        ),
        BadCall("build(EnvironmentConfig, 7)", "ConfigValidationError", ("7",)),
        BadCall("AgentConfig(learning_rate=-1.0)", "UnknownFieldError", ("learning_rate",)),
        BadCall("TrainingConfig(total_steps=0)", "ConfigValidationError", ("total_steps",)),
        BadCall("NetworkConfig(width=0)", "UnknownFieldError", ("NetworkConfig", "width")),
        BadCall("CheckpointConfig(keep_last=0)", "ConfigValidationError", ("keep_last",)),
        BadCall('ParallelConfig(over="rows")', "ConfigValidationError", ("rows",)),
        BadCall("EvaluationConfig(num_attempts=0)", "UnknownFieldError", ("num_attempts",)),
        BadCall("ActionConfig(mask_in_info=True)", "ConfigValidationError", ("mask_in_info", "mask")),
        BadCall("CurriculumConfig(exploration=2.0)", "UnknownFieldError", ("CurriculumConfig", "exploration")),
        BadCall("DatasetConfig(max_grid_width=0)", "ConfigValidationError", ("max_grid_width",)),
        BadCall('EpisodeConfig(mode="eval")', "ConfigValidationError", ("eval",)),
        BadCall("HistoryConfig(max_history_length=0)", "ConfigValidationError", ("max_history_length",)),
        BadCall('ObservationConfig(layout="rows")', "ConfigValidationError", ("rows", "layout")),
        BadCall('ObservationConfig(grid_format="picture")', "ConfigValidationError", ("picture", "grid_format")),
        BadCall("RewardConfig(gamma=1.5)", "ConfigValidationError", ("1.5",)),
        BadCall('AugmentationConfig(symmetries="some")', "ConfigValidationError", ("some",)),
        BadCall('AnswerConfig(source="guess")', "ConfigValidationError", ("guess",)),
        BadCall("CloningConfig(learner_share=2.0)", "ConfigValidationError", ("learner_share", "2.0")),
        BadCall('LoggingConfig(run_name="")', "ConfigValidationError", ("run_name",)),
        BadCall('ScheduleConfig(decay="square")', "ConfigValidationError", ("square",)),
    ),
    "Wrappers and adapters": (
        BadCall("AutoReset(None)", "TypeError", ("NoneType",)),
        BadCall("EpisodeStatistics(params)", "TypeError", ("EnvParams",)),
        BadCall("FlatActions(3)", "TypeError", ("a wrapper",)),
        BadCall("FlatActions(env).step(env_state, 10**9, params)", "EquinoxRuntimeError", ("invalid_action_policy",)),
        BadCall("FlatActions(env).step(env_state, 0.5, params)", "TypeError", ("env", "params")),
        BadCall("Trials(env).reset(key, params)", "ValueError", ("Trials", "params")),
        BadCall("Trials(None)", "TypeError", ("NoneType",)),
        BadCall("GymnasiumEnv(config, params)", "TypeError", ("params",)),
        BadCall('GymnasiumEnv(env, params, render_mode="human")', "ValueError", ("human", "render_mode")),
        BadCall("GymnasiumEnv(AutoReset(env), params)", "ValueError", ("AutoReset",)),
        BadCall("register_gymnasium('mine/one-v0')", "TypeError", ("mine/one-v0", "dataset")),
        BadCall("gymnasium_env.reset(seed=-1)", "Error", ("-1",)),
        BadCall("gymnasium_env.reset(options={'task': 'three'})", "ValueError", ("task",)),
        BadCall("gymnasium_env.step(None)", "ResetNeeded", ("no episode",)),
        BadCall("GymnasiumVectorEnv(env, params, num_envs=0)", "ValueError", ("num_envs",)),
        BadCall("GymnasiumVectorEnv(None, params)", "TypeError", ("params",)),
        BadCall('GymnaxEnvironment("arc-agi-3").default_params', "UnknownDatasetError", ("arc-agi-3",)),
        BadCall("GymnaxEnvironment(tasks, max_episod_steps=7)", "UnknownFieldError", ("max_episod_steps",)),
        BadCall("StoaEnvironment(None, None)", "TypeError", ("NoneType",)),
    ),
    "Experts and traces": (
        BadCall('Painter().solve(pair, "pixel")', "CannotSolveError", ("pixel", "point, bbox, mask")),
        BadCall("candidate_actions(key, env_state, params, 1)", "ValueError", ("the number",)),
        BadCall("candidate_actions(key, state, params, 64)", "ValueError", ("state",)),
        BadCall("look_ahead(state, points, params)", "ValueError", ("state",)),
        BadCall("look_ahead(env_state, bbox, params)", "ValueError", ("k actions",)),
        BadCall("soft_choice(jnp.ones(2), jnp.ones(2, bool), 0.0)", "ValueError", ("0.0",)),
        BadCall("LookaheadAgent(0)", "TypeError", ("JaxArcConfig",)),
        BadCall('Graph({"": None}, frozenset())', "GraphError", ("a node",)),
        BadCall('Graph({"a": None}, frozenset({("a", "b")}))', "GraphError", ("a", "b")),
        BadCall('Graph.of_tasks(tasks, "some")', "GraphError", ("some", "all", "train", "test")),
        BadCall('pairs_by_id(tasks, "some")', "GraphError", ("some", "all", "train", "test")),
        BadCall("get_scc_graphs(None)", "TypeError", ("NoneType",)),
        BadCall('record_traces(tasks, "paintr")', "ExpertError", ("paintr",)),
        BadCall('record_traces(tasks, Painter(), "pixel")', "ValueError", ("pixel",)),
        BadCall("record_traces(tasks, None)", "ExpertError", ("None",)),
        BadCall('record_traces(tasks, Painter(), strategy="threads")', "ValueError", ("threads", "workers")),
        BadCall("record_traces(tasks, Painter(), processes=2)", "ValueError", ("processes=2", "sequential")),
        BadCall('get_trace_hierarchical(graph, "threads")', "ValueError", ("threads",)),
        BadCall('ExpertSpec.of(None, "bbox")', "ExpertError", ("None",)),
        BadCall('Trace.from_json("{}")', "ValueError", ("{}",)),
    ),
    "Surrogate": (
        BadCall('SurrogateConfig(problem="chess")', "ConfigValidationError", ("problem", "chess")),
        BadCall("SurrogateMeshConfig(stages=0)", "ConfigValidationError", ("stages", "0")),
        BadCall("ParentSetsConfig(models_per_batch=0)", "ConfigValidationError", ("models_per_batch", "0")),
        BadCall("LookaheadConfig(temperature=0.0)", "ConfigValidationError", ("temperature", "0.0")),
        BadCall("LookaheadConfig(episode_steps=3)", "ConfigValidationError", ("episode_steps", "num_examples", "256")),
        BadCall("StructuralModelConfig(num_variables=0)", "ConfigValidationError", ("num_variables",)),
        BadCall("GraphsConfig(observational_share=2.0)", "ConfigValidationError", ("observational_share", "2.0")),
        BadCall(
            "draw_parent_sets(np.random.default_rng(0), 1, StructuralModelConfig(num_variables=10))",
            "ValueError",
            ("num_variables=10", "surrogate=graphs"),
        ),
        BadCall(
            "draw_graphs(np.random.default_rng(0), 1, StructuralModelConfig(num_samples=1))",
            "ValueError",
            ("constant",),
        ),
        BadCall("describe_samples(np.ones((4, 3)))", "ValueError", ("variable 0", "constant")),
        BadCall("describe_samples(np.eye(3) * np.inf)", "ValueError", ("finite", "(0, 0)")),
        BadCall("describe_samples(np.eye(3), np.ones((2, 2), bool))", "ValueError", ("is_set", "(3, 3)", "(2, 2)")),
        BadCall("edge_probabilities(None, np.full((5, 2), np.nan))", "ValueError", ("finite", "nan")),
        BadCall("edge_probabilities(None, np.ones(5))", "ValueError", ("(5,)",)),
        BadCall("edge_probabilities(None, np.eye(3))", "TypeError", ("EdgeScorer", "NoneType")),
        BadCall('describe_samples(np.full((5, 2), "a"))', "TypeError", ("real numbers", "U1")),
        BadCall('SurrogateTrainingConfig(precision="half")', "ConfigValidationError", ("half",)),
        BadCall("SurrogateNetworkConfig(num_layers=0)", "ConfigValidationError", ("num_layers",)),
        BadCall("kl_divergence_loss_jax(jnp.ones(2), jnp.ones(3))", "ValueError", ("2", "3")),
        BadCall("convert_metrics(3)", "TypeError", ("metrics are",)),
        BadCall("DataPrefetcher([], buffer_size=0)", "ValueError", ("buffer_size", "0")),
    ),
    "Agents, training, evaluation": (
        BadCall('read_submission("no/such/file.json")', "SubmissionError", ("no/such/file.json",)),
        BadCall("read_submission(broken_file)", "SubmissionError", ("JSON",)),
        BadCall("read_submission(wrong_color_file)", "SubmissionError", ("wrong_color",)),
        BadCall('score_submission({"one": []}, tasks)', "SubmissionError", ("one",)),
        BadCall('score_submission({"one": [[]], "three": [[]]}, tasks)', "SubmissionError", ("one", "three")),
        BadCall("read_recordings(broken_file)", "TraceFileError", ("JSON",)),
        BadCall("read_action_counts(broken_file)", "TraceFileError", ("JSON",)),
        BadCall("RecordedAgent.create({}, tasks, config)", "RecordingError", ("the recordings",)),
        BadCall('RecordedAgent.create({("three", 0): [[34, 0, 0]]}, tasks, config)', "RecordingError", ("three",)),
        BadCall('RecordedAgent.create({("one", 5): [[34, 0, 0]]}, tasks, config)', "RecordingError", ("one", "5")),
        BadCall(
            'RecordedAgent.create({("one", 0): [[34, 0]]}, tasks, config)', "InvalidActionError", ("one", "2 numbers")
        ),
        BadCall(
            'RecordedAgent.create({("one", 0): [[34, 0, 30]]}, tasks, config)', "InvalidActionError", ("one", "30")
        ),
        BadCall("evaluate(None, tasks, config)", "AgentMismatchError", ("evaluate",)),
        BadCall("SearchConfig(max_states=0)", "ConfigValidationError", ("max_states",)),
        BadCall("solve([], [[1]])", "TaskFormatError", ("train",)),
        BadCall("solve([([[1]], [[1]])], [[11]])", "TaskFormatError", ("11",)),
        BadCall('GridProgram.parse("crop")', "ProgramError", ("crop",)),
        BadCall("list(search_all([], SearchConfig(), 0))", "ValueError", ("0",)),
        BadCall('Word.parse("cropp")', "WordError", ("cropp",)),
        BadCall("evaluate_solver(3, tasks)", "TypeError", ("int",)),
        BadCall("evaluate_solver(print, tasks, attempts=0)", "ValueError", ("0",)),
        BadCall("open_run_folder(Path('no/such/run'))", "NotARunError", ("no/such/run",)),
        BadCall("load_checkpoint(Path('no/such/checkpoint'), {})", "CheckpointError", ("no/such/checkpoint",)),
        BadCall("read_metrics(broken_file)", "ValueError", ("broken.json, line",)),
        BadCall("read_reports(broken_file, Report)", "ValueError", ("broken.json, line",)),
        BadCall('load_agent("no/such/run")', "NotARunError", ("no/such/run",)),
        BadCall("Experiment(training={})", "ConfigValidationError", ("Experiment", "training")),
        BadCall("SurrogateExperiment(surrogate={})", "ConfigValidationError", ("surrogate", "dict")),
        BadCall("Experiment(environment=config)", "ConfigValidationError", ("Experiment",)),
        BadCall('load_pairs(TaskConfig(train_dataset="arc"), (30, 30))', "UnknownDatasetError", ("arc",)),
        BadCall("EditPolicy.create(key, config, NetworkConfig())", "ValueError", ("reveal_target",)),
    ),
    "Many devices": (
        BadCall("data_mesh(1000)", "ValueError", ("1000",)),
        BadCall("data_mesh(0)", "ValueError", ("num_devices",)),
        BadCall("create_mesh((1000,), ('data',))", "ValueError", ("data", "1000")),
        BadCall("create_mesh((1, 1), ('data',))", "ValueError", ("data",)),
        BadCall("use_host_cores(0)", "ValueError", ("num must", "0")),
        BadCall("rollout(env, params, policy, num_envs=0, num_steps=1, key=key)", "ValueError", ("num_envs",)),
        BadCall("rollout(env, params, policy, num_envs=2, num_steps=0, key=key)", "ValueError", ("num_steps",)),
        BadCall("rollout(env, config, policy, num_envs=2, num_steps=1, key=key)", "TypeError", ("EnvParams",)),
        BadCall("rollout(env, params, policy, num_envs=2, num_steps=1, key=7)", "TypeError", ("7",)),
        BadCall(
            "rollout(env, params, num_envs=2, num_steps=1, key=key, policy=policy, chunk_steps=0)",
            "ValueError",
            ("chunk_steps",),
        ),
        BadCall("compile_rollout(env, params, policy, num_envs=-1, num_steps=1)", "ValueError", ("num_envs", "-1")),
        BadCall("pipeline(None, None, jnp.ones(3), data_mesh(1), 2)", "ValueError", ("pipeline",)),
        BadCall(
            "start_processes(ParallelConfig(multihost=True, num_processes=0))",
            "ConfigValidationError",
            ("num_processes",),
        ),
    ),
    "Drawing, saving, checking, measuring": (
        BadCall("task_svg(5)", "TypeError", ("JaxArcTask", "int")),
        BadCall("state_svg(states)", "ValueError", ("states",)),
        BadCall("state_image(3)", "TypeError", ("arc_reset",)),
        BadCall("render_grid(np.zeros(3, int))", "ValueError", ("3",)),
        BadCall("render_grid([[10]])", "ValueError", ("a grid",)),
        BadCall("render_grid([[0.5]])", "TypeError", ("a grid",)),
        BadCall("render_state(states)", "ValueError", ("states",)),
        BadCall("animate([])", "ValueError", ("an animation",)),
        BadCall("task_image(3)", "TypeError", ("JaxArcTask",)),
        BadCall('save_state_efficiently(env_state, "x.state")', "ValueError", ("state",)),
        BadCall('save_state_efficiently(states, "x.state")', "ValueError", ("states",)),
        BadCall('save_state_efficiently(None, "x.state")', "TypeError", ("state",)),
        BadCall('load_state_efficiently("no/such/file", tasks, state)', "FileNotFoundError", ("no/such/file",)),
        BadCall("load_state_efficiently(broken_file, tasks, state)", "StateFileError", ("state",)),
        BadCall("extract_task_id_from_index(-2)", "ValueError", ("-2",)),
        BadCall("extract_task_id_from_index(10**6)", "UnknownTaskError", ("register_task",)),
        BadCall("extract_task_id_from_index([0, 1])", "ValueError", ("one task",)),
        BadCall("check_environment(None, params)", "EnvironmentCheckError", ("AttributeError",)),
        BadCall("check_environment(env, config)", "TypeError", ("EnvParams",)),
        BadCall("create_test_config(max_episod_steps=7)", "UnknownFieldError", ("max_episod_steps",)),
        BadCall('create_test_config(selection_format="pixel")', "ConfigValidationError", ("pixel", "selection_format")),
        BadCall("profile_fn(3, 1)", "TypeError", ("profile_fn", "3")),
        BadCall("profile_fn(abs, -1, n_warmup=-1)", "ValueError", ("profile_fn", "n_warmup")),
        BadCall("profile_fn(abs, -1, n_runs=0)", "ValueError", ("profile_fn", "n_runs")),
        BadCall("compiled_memory(3)", "TypeError", ("a compiled",)),
        BadCall("count_collectives(3)", "TypeError", ("a compiled",)),
        BadCall("memory_report(3, {}, {})", "TypeError", ("a compiled",)),
        BadCall("to_arrays(3)", "TypeError", ("to_arrays", "int")),
        BadCall('to_arrays({"name": ["one"]})', "TypeError", ("name",)),
    ),
}

_RETURNED = "functions of this package return it; nobody needs to make one"
_OURS = "it takes what other functions of this package return"
_RULES = "the checks themselves, which refuse for others"
_ANYTHING = "any value of the kind that it names will do"
_SAME = "another name of a class of this table"

NOTHING_TO_REFUSE: Final[dict[str, str]] = {
    name: reason
    for reason, names in {
        _RETURNED: (
            "AdaptiveTrainStep ArcEnvState CandidateSet CheckReport CompiledRollout CompiledTrainStep Curriculum "
            "Dataset Evaluation GymnaxParams GymnaxState LearnerState TrainConfig Found SearchResult ProceduralTasks "
            "Recording Report Rollout Score TaskBuffer TaskRow TaskStatistics Timing MetricTotals TrainingPairs "
            "TrainingState TrainingBatchJAX GraphBatch Checkpoints RunFolder TrainResult LookaheadTask MeshPlacement "
            "StructuralModelsTask SurrogateAgent SurrogateExperiment SurrogateReport SurrogateResult clip_coordinates "
            "edge_loss make_task train_surrogate"
        ),
        _OURS: (
            "CandidateScorer CountingScorer EdgeScorer EditAgent RandomPolicy SubmitPolicy action_numbers "
            "apply_counts best_first candidates_of choose_box count_episodes count_played_tasks "
            "create_adaptive_train_step create_jax_surrogate_train_step create_run_folder create_surrogate_train_step "
            "curriculum_weights effective_task_count majority_vote from_static in_one_piece init_optimizer "
            "surrogate_learning_rate make_optimizer make_surrogate_optimizer missing_for_lookahead "
            "missing_for_painting one_task_per_pair one_task_per_test over_stages place_weights play_every_task "
            "record render_task require_memory task_checksum to_static load_policy TrainedAgent numbers_of "
            "program_memory rows_of_submission size_of write_submission write_task_rows"
        ),
        _RULES: (
            "CheckedConfig IntegerRule check_known enforce_rules limited refuse_invalid refuse_unstructured spell "
            "check_action RuleMessages"
        ),
        _ANYTHING: (
            "move_offset CompileCounter DatasetVersion Erratum GreedyPainter SearchPainter TraceCache any_process "
            "available_memory digest enable_compilation_cache allgather_text distributed_session known_issues barrier "
            "broadcast_flag profile_server replicate require_same save_memory_profile to_host trace"
        ),
        _SAME: "UnifiedActionConfig UnifiedDatasetConfig UnifiedRewardConfig",
    }.items()
    for name in names.split()
}
"""Public names without a bad call, each with the reason."""
