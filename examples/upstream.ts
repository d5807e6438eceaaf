/**
 * `npm run upstream -- [port]`: a FHIR server that lets everybody do everything, for trying the gateway in front of it
 * (docs/gateway.md). Its patients are made up, it listens on loopback and nowhere else, and it keeps nothing at its end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fhirServer, openRepository } from '../src/fhir-server/index.ts'
import { samplePatients } from '../src/fhir-server/sample/index.ts'
import { createLogger } from '../src/web/index.ts'

const LOOPBACK = '127.0.0.1'

export interface Upstream {
  readonly url: string
  close(): Promise<void>
}

export async function startUpstream(port: number, patients = 60): Promise<Upstream> {
  const url = `http://${LOOPBACK}:${port}/fhir`
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-upstream-'))
  const dataFile = join(folder, 'fhir.db')
  const repository = openRepository({ file: dataFile, baseUrl: url })
  repository.load(samplePatients({ count: patients, now: Date.now() }))
  repository.close()
  const logger = createLogger({ level: 'warn' })
  const app = await fhirServer({ baseUrl: url, dataFile, smartConfiguration: {}, logger })
  const close = async () => {
    await app.close()
    rmSync(folder, { recursive: true, force: true })
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
  const upstream = await startUpstream(Number(process.argv[2] ?? 8090)).catch((error: Error) => {
    console.error(`Cannot start: ${error.message}`)
    process.exit(1)
  })
  console.log(`A FHIR server without a guard, with sample patients: ${upstream.url}. Stop it with Ctrl-C.`)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void upstream.close())
}
