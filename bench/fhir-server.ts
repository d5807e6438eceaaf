import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { samplePatients } from '../sample-patients/index.ts'
import { fhirServer, openRepository } from '../src/backends/sqlite/index.ts'

/**
 * The embedded FHIR server: CPU of the server's process per request over HTTP, unguarded, for a read, a search by
 * patient, status and sort, and a create; and resources per second of a load.
 *
 *   node bench/fhir-server.ts
 */
const PATIENTS = 200
const CONNECTIONS = 4

interface Usage {
  readonly user: number
  readonly system: number
}

if (process.argv[2] === 'serve') await serve(process.argv[3] ?? '')
else await measure()

async function serve(dataFile: string): Promise<void> {
  const app = await fhirServer({ baseUrl: 'http://fhir.test/fhir', dataFile, smartConfiguration: {} })
  await app.listen({ port: 0, host: '127.0.0.1' })
  process.on('message', () => process.send?.({ ...process.cpuUsage(), memory: process.memoryUsage().rss }))
  process.on('disconnect', () => app.close())
  process.send?.((app.server.address() as AddressInfo).port)
}

async function measure(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'fhir-bench-'))
  const dataFile = join(folder, 'fhir.db')
  load(dataFile)
  const started = performance.now()
  const server = fork(new URL(import.meta.url).pathname, ['serve', dataFile])
  const [port] = (await once(server, 'message')) as [number]
  report('start', `${(performance.now() - started).toFixed(0)} ms`)
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
  const usage = async (): Promise<Usage & { readonly memory: number }> => {
    server.send('usage')
    const [answer] = await once(server, 'message')
    return answer
  }
  const get = (path: string) => pool.request({ method: 'GET', path: `/fhir/${path}` })
  const ids = await patientIds(get)
  const any = () => ids[Math.floor(Math.random() * ids.length)]

  async function bench(name: string, count: number, ask: () => ReturnType<typeof get>): Promise<void> {
    const run = async (times: number) => {
      for (let done = 0; done < times; done++) await (await ask()).body.dump()
    }
    const all = (times: number) =>
      Promise.all(Array.from({ length: CONNECTIONS }, () => run(times / CONNECTIONS)))
    await all(count / 4)
    const [before, at] = [await usage(), performance.now()]
    await all(count)
    const [after, ms] = [await usage(), performance.now() - at]
    const cpu = (after.user + after.system - before.user - before.system) / count
    report(name, `${cpu.toFixed(0)} us CPU, ${((count / ms) * 1000).toFixed(0)}/s`)
  }

  await bench('read', 20_000, () => get(`Patient/${any()}`))
  await bench('search', 8_000, () =>
    get(`Condition?patient=${any()}&clinical-status=active&_sort=-recorded-date`),
  )
  await bench('create', 4_000, () =>
    pool.request({
      method: 'POST',
      path: '/fhir/Observation',
      headers: { 'content-type': 'application/fhir+json' },
      body: observationOf(any() ?? ''),
    }),
  )
  report('memory', `${((await usage()).memory / 1e6).toFixed(0)} MB`)
  await pool.close()
  server.disconnect()
  await once(server, 'exit')
  rmSync(folder, { recursive: true })
}

function load(dataFile: string): void {
  const resources = [...samplePatients({ count: PATIENTS, now: Date.now() })]
  const repository = openRepository({ file: dataFile, baseUrl: 'http://fhir.test/fhir' })
  const [cpu, at] = [process.cpuUsage(), performance.now()]
  const { created, refused } = repository.load(resources)
  const [{ user, system }, ms] = [process.cpuUsage(cpu), performance.now() - at]
  repository.close()
  if (refused.length > 0) throw new Error(`Cannot load the sample: ${JSON.stringify(refused[0])}`)
  const each = (user + system) / created
  report(
    'load',
    `${created} resources, ${((created / ms) * 1000).toFixed(0)}/s, ${each.toFixed(0)} us CPU each`,
  )
}

async function patientIds(get: (path: string) => ReturnType<Pool['request']>): Promise<readonly string[]> {
  const reply = await get('Patient?_count=1000&_elements=id')
  const { entry } = (await reply.body.json()) as { entry: readonly { resource: { id: string } }[] }
  return entry.map(it => it.resource.id)
}

function observationOf(patient: string): string {
  const unit = { unit: 'mmHg', system: 'http://unitsofmeasure.org', code: 'mm[Hg]' }
  const coded = (system: string, code: string, display: string) => ({ coding: [{ system, code, display }] })
  return JSON.stringify({
    resourceType: 'Observation',
    status: 'final',
    category: [
      coded('http://terminology.hl7.org/CodeSystem/observation-category', 'vital-signs', 'Vital Signs'),
    ],
    code: coded('http://loinc.org', '85354-9', 'Blood pressure panel'),
    subject: { reference: `Patient/${patient}` },
    effectiveDateTime: '2026-02-03T04:05:06Z',
    component: [
      {
        code: coded('http://loinc.org', '8480-6', 'Systolic blood pressure'),
        valueQuantity: { value: 128, ...unit },
      },
      {
        code: coded('http://loinc.org', '8462-4', 'Diastolic blood pressure'),
        valueQuantity: { value: 82, ...unit },
      },
    ],
  })
}

function report(name: string, text: string): void {
  process.stdout.write(`${name.padEnd(8)} ${text}\n`)
}
