/**
 * `npm run test:export -- <fhir base>`: bulk exports through the gateway in front of any FHIR R4 server. On a server without patients
 * it runs the tests of exports, with resources that it removes in the end. Otherwise it only reads: it compares exports of
 * each kind with what the server itself shows.
 */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { newPlace, type Place, runProgram, type Started, startProcess } from '../test/support/started.ts'
import { listResources, parseLines, type Resources } from './test-export/list-resources.ts'

const [, , upstreamUrl = ''] = process.argv
if (!URL.canParse(upstreamUrl)) {
  process.stderr.write('Cannot test: npm run test:export -- <FHIR base URL>\n')
  process.exit(1)
}

const patients = await listResources(upstreamUrl, 'Patient?_elements=id')
if (patients.size === 0) {
  process.env.TEST_UPSTREAM = upstreamUrl
  await import('../test/bulk-export.test.ts')
} else
  describe(`exports compared with ${upstreamUrl}`, () => {
    let place: Place
    let servers: Started
    before(async () => {
      place = await newPlace({
        SMART_FHIR_UPSTREAM_URL: upstreamUrl,
        SMART_FHIR_EXPORT_FILE_RESOURCES: '1000',
      })
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
      const key = { ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES384', use: 'sig' }
      writeFileSync(join(place.folder, 'jwks.json'), JSON.stringify({ keys: [key] }))
      writeFileSync(
        join(place.folder, 'key.json'),
        JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid: 'k1' }),
      )
      await run('client add --id exporter --jwks-file jwks.json --scope system/*.rs')
      servers = startProcess(['start'], place)
      await servers.printed(/is running/)
    })
    after(async () => {
      servers.child.kill('SIGTERM')
      await servers.ended()
      place.remove()
    })

    async function run(line: string): Promise<void> {
      const { exitCode, stdout, stderr } = await runProgram(line.split(' '), place)
      assert.equal(exitCode, 0, stdout + stderr)
    }

    /** The resources of an export, by type. */
    async function exportTo(folder: string, options = ''): Promise<ReadonlyMap<string, Resources>> {
      await run(`data export --from ${place.fhirUrl} --client exporter --key key.json${options} ${folder}`)
      const files = readdirSync(join(place.folder, folder)).filter(it => it.endsWith('.ndjson'))
      return new Map(
        files.map(name => [
          name.replace('.ndjson', ''),
          parseLines(readFileSync(join(place.folder, folder, name), 'utf8'), place.fhirUrl),
        ]),
      )
    }

    it('has all resources of the server, with their content', async () => {
      const exported = await exportTo('all')
      assert.ok(exported.has('Patient'))
      for (const [type, resources] of exported)
        if (type !== 'Binary') assert.deepEqual(resources, await listResources(upstreamUrl, type), type)
    })

    it('has what belongs to one patient', async () => {
      const [reference = ''] = patients.keys()
      const id = reference.replace('Patient/', '')
      const exported = await exportTo(
        'one',
        ` --patient ${id} --type Patient,Condition,Encounter,Observation`,
      )
      assert.deepEqual([...(exported.get('Patient') ?? new Map()).keys()], [reference])
      for (const [type, resources] of exported)
        if (type !== 'Patient')
          assert.deepEqual(resources, await listResources(upstreamUrl, `${type}?patient=${id}`), type)
    })

    it('has what has changed since a time', async () => {
      const all = await listResources(upstreamUrl, 'Condition')
      const times = [...all.values()].map(it => it.meta?.lastUpdated ?? '').sort()
      const since = times[Math.floor(times.length / 2)] ?? ''
      const exported = await exportTo('since', ` --since ${since} --type Condition`)
      const expected = await listResources(
        upstreamUrl,
        `Condition?_lastUpdated=ge${encodeURIComponent(since)}`,
      )
      assert.deepEqual(exported.get('Condition'), expected)
    })
  })
