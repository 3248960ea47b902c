// Asking the server of this page.

/** Get an answer, or have something done if there is a body; an error tells in words what went wrong. */
export async function ask(name, body) {
  const request = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(name, request);
  } catch {
    throw new Error("No answer: is the command still running?");
  }
  const found = await answer.json().catch(() => ({ error: `The server said ${answer.status}.` }));
  if (found.error) throw new Error(found.error);
  return found;
}
