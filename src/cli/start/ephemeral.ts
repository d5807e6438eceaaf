import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatSettingsFile, overrideSettings, type SettingTexts } from '../../config/index.ts'
import type { Io } from '../command.ts'

export interface Ephemeral {
  /** The environment of a start that keeps everything in a temporary folder. */
  readonly env: Io['env']
  /** A file with the settings of this start, for other commands (`SMART_CONFIG`). */
  readonly settingsFile: string
}

/** Makes a folder that is removed when this process ends, and chooses free ports (START-12). */
export async function makeEphemeral(env: Io['env']): Promise<Ephemeral> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const texts = chooseSettings(folder, await findFreePorts(3))
  const settingsFile = join(folder, 'sallyport.yaml')
  writeFileSync(settingsFile, formatSettingsFile(texts))
  return { env: overrideSettings(env, texts), settingsFile }
}

function chooseSettings(folder: string, [auth, fhir, app]: readonly number[]): SettingTexts {
  return {
    issuerUrl: `http://localhost:${auth}`,
    fhirBaseUrl: `http://localhost:${fhir}/fhir`,
    appUrl: `http://localhost:${app}`,
    smartClientLaunchUrl: `http://localhost:${app}/launch`,
    authPort: String(auth),
    fhirPort: String(fhir),
    appPort: String(app),
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
