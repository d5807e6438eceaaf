/**
 * `npm run upstream -- [port] [folder]`: a FHIR server that lets everybody do everything, for trying the gateway in front
 * of it (docs/gateway.md). Its patients are made up, and it listens on loopback and nowhere else. Its data are kept in the
 * folder; without one they are removed at its end.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fhirServer, openRepository } from '../src/backends/sqlite/index.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { createLogger } from '../src/web/http/index.ts'

const LOOPBACK = '127.0.0.1'

export interface Upstream {
  readonly url: string
  close(): Promise<void>
}

/** With a folder its data are kept there, and patients are made only where it has none yet. */
export async function startUpstream(
  port: number,
  patients = 60,
  kept?: string,
  onProgress?: (line: string) => void,
): Promise<Upstream> {
  const url = `http://${LOOPBACK}:${port}/fhir`
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'sallyport-upstream-'))
  mkdirSync(folder, { recursive: true })
  const dataFile = join(folder, 'fhir.db')
  if (!existsSync(dataFile)) {
    onProgress?.(`Creating ${patients} sample patients`)
    const repository = openRepository({ file: dataFile, baseUrl: url })
    repository.load(samplePatients({ count: patients, now: Date.now() }))
    repository.close()
  }
  const logger = createLogger({ level: 'warn' })
  const app = await fhirServer({ baseUrl: url, dataFile, smartConfiguration: {}, logger })
  const close = async () => {
    await app.close()
    if (kept === undefined) rmSync(folder, { recursive: true, force: true })
  }
  try {
    await app.listen({ port, host: LOOPBACK })
  } catch (error) {
    await close()
    throw error
  }
  return { url, close }
}

if (import.meta.main) {
  const [, , port = '8090', folder] = process.argv
  const upstream = await startUpstream(Number(port), 60, folder, console.log).catch((error: Error) => {
    console.error(`Cannot start: ${error.message}`)
    process.exit(1)
  })
  console.log(
    `A FHIR server with sample patients and without access control: ${upstream.url}. Stop it with Ctrl-C.`,
  )
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void upstream.close())
}
