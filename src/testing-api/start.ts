import { checkOptions, checkServers } from './check-options.ts'
import { createCommands } from './commands.ts'
import { createConnection } from './connection.ts'
import { withoutSettings } from './environment.ts'
import { startServers } from './processes.ts'
import type { Sallyport, StartOptions } from './types.ts'

/** Starts servers with data of their own, on free ports. They stop with `stop()`, or when this process ends. */
export async function startSallyport(options: StartOptions = {}): Promise<Sallyport> {
  checkOptions('startSallyport', options)
  const { settings = {}, servers: names = [], import: files = [] } = options
  checkServers(names)
  const env = { ...withoutSettings(process.env), ...settings }
  const servers = await startServers(names, env)
  const { run, stop: stopCommands } = createCommands({ ...env, ...servers.env })
  const stop = async () => {
    await stopCommands()
    await servers.stop()
  }
  try {
    if (files.length > 0) await run(['data', 'import', ...files])
  } catch (error) {
    await stop()
    throw error
  }
  const connection = createConnection({ ...settings, ...servers.env }, run)
  return Object.assign(connection, { stop, [Symbol.asyncDispose]: stop })
}
