/**
 * Loaded into the process of every test file: ends it when it does not end by itself, because a browser or a server was
 * left open after a failure. The timer alone keeps nothing alive.
 */
const seconds = Number(process.env.TEST_FILE_LIMIT ?? 300)

setTimeout(() => {
  process.stderr.write(`Cannot finish ${process.argv[1]}: still running after ${seconds} s\n`)
  process.exit(1)
}, seconds * 1000).unref()
