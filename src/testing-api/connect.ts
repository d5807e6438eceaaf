import { createCommands } from './commands.ts'
import { createConnection } from './connection.ts'
import { pickServers, withoutSettings } from './environment.ts'
import type { Connection } from './types.ts'

/** Uses servers that another process has started, by what `env` of `startSallyport`, or `start --run`, has put in the environment. */
export function connectSallyport(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Connection {
  const servers = pickServers(env)
  if (servers.FREE_PORT === undefined)
    throw new Error(
      'connectSallyport: the environment names no servers. Start them with startSallyport and pass on its env, or run the tests with sallyport start --run',
    )
  return createConnection(servers, createCommands({ ...withoutSettings(process.env), ...servers }).run)
}
