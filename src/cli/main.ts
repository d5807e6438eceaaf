import cluster from 'node:cluster'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// The compile cache halves the time of the next start. The folder is our own: in the default, a shared temporary
// folder, another user could place code for us to run.
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/sallyport'))

// Databases and the secret are readable only by this user, whatever folder they are in.
process.umask(0o077)

// A closed reader (`sallyport settings | head -1`) is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

if (cluster.isWorker) {
  const { runWorker } = await import('./workers/worker.ts')
  runWorker({ send: message => process.send?.(message), on: process.on.bind(process) })
} else {
  const { stdin, stdout, stderr, env } = process
  const io = { stdin, stdout, stderr, env, cwd: process.cwd() }
  const args = process.argv.slice(2)
  process.exitCode =
    args[0] === '--batch'
      ? await (await import('./batch.ts')).runBatch(io)
      : await (await import('./command-line.ts')).runCommandLine(args, io)
  // A connection that a client keeps alive must not keep the process running.
  setTimeout(() => process.exit(), 500).unref()
}
