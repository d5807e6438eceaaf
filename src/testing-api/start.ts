import { type Env, runCommand, startServers } from './processes.ts'
import { createSallyport } from './sallyport.ts'
import type { Sallyport, StartOptions } from './types.ts'

/** Starts servers with data of their own, on free ports. They stop with `stop()`, or when this process ends. */
export async function startSallyport(options: StartOptions = {}): Promise<Sallyport> {
  const { settings = {}, servers: names = [], import: files = [] } = options
  const env = { ...withoutSettings(process.env), ...settings }
  const servers = await startServers(names, env)
  const run = (...args: readonly string[]) => runCommand(args, { ...env, ...servers.env })
  try {
    if (files.length > 0) await run('data', 'import', ...files)
  } catch (error) {
    await servers.stop()
    throw error
  }
  return createSallyport({ servers, run, password: settings.SMART_SEED_CLINICIAN_PASSWORD })
}

function withoutSettings(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SMART_')))
}
