import { checkOptions } from './check-options.ts'
import { createConnection } from './connection.ts'
import { withoutSettings } from './environment.ts'
import { createRun, startServers } from './processes.ts'
import type { Sallyport, StartOptions } from './types.ts'

/** Starts servers with data of their own, on free ports. They stop with `stop()`, or when this process ends. */
export async function startSallyport(options: StartOptions = {}): Promise<Sallyport> {
  checkOptions('startSallyport', options)
  const { settings = {}, servers: names = [], import: files = [] } = options
  const env = { ...withoutSettings(process.env), ...settings }
  const servers = await startServers(names, env)
  const { stop } = servers
  const run = createRun({ ...env, ...servers.env })
  try {
    if (files.length > 0) await run(['data', 'import', ...files])
  } catch (error) {
    await stop()
    throw error
  }
  const connection = createConnection({ ...settings, ...servers.env }, run)
  return Object.assign(connection, { stop, [Symbol.asyncDispose]: stop })
}
