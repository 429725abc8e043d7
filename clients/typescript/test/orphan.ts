/** Starts a server, says its process id, and ends without stopping it, or waits to be killed. */

const built = new URL("../../dist/esm/server.js", import.meta.url).href;
const { Server } = (await import(built)) as typeof import("../dist/esm/server.js");

const [, , ending, folder] = process.argv;
const server = await Server.start({
  python: process.env["SUREFOOT_PYTHON"] ?? "python3",
  args: ["--port", "0", "--dir", folder as string],
  timeout: 60_000,
});
console.log(`server ${server.pid}`);
if (ending !== "exit") setInterval(() => {}, 1000);
