import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Some hundred files are read at a start; kept compiled, the next start has them in half the time. The folder is our
// own: in the usual one, a shared temporary folder, another user could leave code for us to run.
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/sallyport'))

// Databases and the secret are for this user only, whatever folder they are put in.
process.umask(0o077)

// A reader that goes away (`sallyport settings | head -1`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

const { runCommandLine } = await import('./command-line.ts')

process.exitCode = await runCommandLine(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
})

// A connection that somebody else keeps alive does not keep the process.
setTimeout(() => process.exit(), 500).unref()
