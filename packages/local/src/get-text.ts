// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { request } = process.getBuiltinModule("node:http");
// GET of a page of one of our own processes.

/** @throws when it does not answer 200 in time */
export function getText(url: string, timeoutMs = 2000): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const outgoing = request(url, { agent: false, timeout: timeoutMs }, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (text += chunk));
    response.once("error", reject);
    response.once("end", () => {
      if (response.statusCode === 200) resolve(text);
      else reject(new Error(`${url} answered ${response.statusCode}`));
    });
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error(`${url} did not answer in ${timeoutMs} ms`)));
  outgoing.once("error", reject);
  outgoing.end();
  return promise;
}
