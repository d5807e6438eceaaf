/** A server of `bench/auth.ts`, in a process of its own. */
import type { Grant } from './grants.ts'

const server =
  process.argv[2] === 'oidc-provider'
    ? await (await import('./oidc-provider.ts')).startOidcProvider()
    : await (await import('./own.ts')).startOwn()
const { port, host, path } = server

process.on('message', async (message: 'usage' | { readonly grant: Grant; readonly count: number }) => {
  process.send?.(
    message === 'usage' ? readUsage() : { forms: await server.makeForms(message.grant, message.count) },
  )
})
process.on('disconnect', () => process.exit(0))
process.send?.({ port, host, path })

function readUsage() {
  const [all, main] = [process.cpuUsage(), process.threadCpuUsage()]
  return { all: all.user + all.system, main: main.user + main.system, rss: process.memoryUsage.rss() }
}
