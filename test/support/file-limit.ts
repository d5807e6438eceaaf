/**
 * Loaded into every test process: ends it when a file does not end by itself, because a browser or a server was left open after
 * a failure. The timer alone keeps nothing alive.
 */
const seconds = Number(process.env.TEST_FILE_LIMIT ?? 300)
let timer: NodeJS.Timeout | undefined

export function limitFile(file: string | undefined): void {
  clearTimeout(timer)
  timer = setTimeout(() => {
    process.stderr.write(`Cannot finish ${file}: still running after ${seconds} s\n`)
    process.exit(1)
  }, seconds * 1000).unref()
}

limitFile(process.argv[1])
