import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatSettingsFile, overrideSettings, type SettingTexts } from '../../config/index.ts'
import type { Io } from '../command.ts'
import type { ServerName } from './parts.ts'

export interface Ephemeral {
  /** The environment of a start that keeps everything in a temporary folder. */
  readonly env: Io['env']
  /** A file with the settings of this start, for other commands (`SMART_CONFIG`). */
  readonly settingsFile: string
}

/**
 * Makes a folder that is removed when this process ends, and chooses free ports for the servers that are started (START-12).
 * Those elsewhere keep the URLs of the settings.
 */
export async function makeEphemeral(env: Io['env'], names: readonly ServerName[]): Promise<Ephemeral> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const texts = chooseSettings(folder, names, await findFreePorts(3))
  const settingsFile = join(folder, 'sallyport.yaml')
  writeFileSync(settingsFile, formatSettingsFile(texts))
  return { env: overrideSettings(env, texts), settingsFile }
}

function chooseSettings(
  folder: string,
  names: readonly ServerName[],
  [auth, fhir, app]: readonly number[],
): SettingTexts {
  const byServer: Readonly<Record<ServerName, SettingTexts>> = {
    auth: { issuerUrl: `http://localhost:${auth}`, authPort: String(auth) },
    fhir: { fhirBaseUrl: `http://localhost:${fhir}/fhir`, fhirPort: String(fhir) },
    app: {
      appUrl: `http://localhost:${app}`,
      smartClientLaunchUrl: `http://localhost:${app}/launch`,
      appPort: String(app),
    },
  }
  return {
    ...Object.assign({}, ...names.map(name => byServer[name])),
    dataDir: join(folder, 'data'),
    databaseUrl: `sqlite:${join(folder, 'data', 'sallyport.db')}`,
  }
}

/** Ports that were free a moment ago, each another. */
export async function findFreePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listenAnywhere))
  const ports = servers.map(server => {
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('Cannot find a free port')
    return address.port
  })
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}

async function listenAnywhere() {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, resolve))
  return server
}
