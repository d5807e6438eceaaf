/**
 * `npm run test:smart-fetch [-- <fhir base>]`: exports with smart-fetch, a client of Bulk Data Access, from the embedded server and
 * through the gateway, and compares its files with the data. The gateway is in front of a test upstream, or of the FHIR server
 * at that base URL, which it only reads. Needs Python 3.11; pip fetches smart-fetch.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startUpstream, type Upstream } from '../examples/upstream.ts'
import { freePorts } from '../test/support/free-ports.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from '../test/support/started.ts'
import { listResources, parseLines } from './test-export/list-resources.ts'

const VERSION = '1.0.3'
const FOLDER = join(homedir(), '.cache/sallyport', `smart-fetch-${VERSION}`)
const CLIENT = 'exporter'
const TEN_MINUTES = 600_000
/** smart-fetch exports Observations of these only, unless it is told otherwise. */
const CATEGORIES = 'social-history,vital-signs,imaging,laboratory,survey,exam,procedure,therapy,activity'
const [, , given] = process.argv

/** The program `smart-fetch`, in a folder of its own. */
function install(): string {
  const program = join(FOLDER, 'bin/smart-fetch')
  if (existsSync(program)) return program
  execFileSync('python3', ['-m', 'venv', '--clear', FOLDER], { stdio: 'inherit' })
  execFileSync(join(FOLDER, 'bin/pip'), ['install', '--quiet', `smart-fetch==${VERSION}`], {
    stdio: 'inherit',
  })
  return program
}

const program = install()

async function succeed(place: Place, line: string): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(line.split(' '), place)
  assert.equal(exitCode, 0, stdout + stderr)
  return stdout + stderr
}

async function start(env: Readonly<Record<string, string>>): Promise<{ place: Place; servers: Started }> {
  const place = await newPlace(env)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const shared = { kid: 'k1', alg: 'ES384', use: 'sig' }
  const write = (name: string, key: object) =>
    writeFileSync(join(place.folder, name), JSON.stringify({ keys: [{ ...key, ...shared }] }))
  write('jwks.json', publicKey.export({ format: 'jwk' }))
  write('key.jwks', { ...privateKey.export({ format: 'jwk' }), key_ops: ['sign'] })
  await succeed(place, `client add --id ${CLIENT} --jwks-file jwks.json --scope system/*.rs`)
  const servers = startProcess(['start'], place)
  await servers.printed(/is running/)
  return { place, servers }
}

async function stop({ place, servers }: { place: Place; servers: Started }): Promise<void> {
  servers.child.kill('SIGTERM')
  await servers.ended()
  place.remove()
}

/** What smart-fetch has downloaded, by type. It starts, polls, downloads all files at once, and deletes. */
async function fetchAll(place: Place, name: string, options: readonly string[] = []) {
  const folder = join(place.folder, name)
  mkdirSync(folder)
  const args = [
    ...['--verbose', 'bulk', '--no-compression', '--fhir-url', place.fhirUrl],
    ...['--smart-client-id', CLIENT, '--smart-key', join(place.folder, 'key.jwks'), ...options, folder],
  ]
  const child = spawn(program, args, { stdio: 'inherit', timeout: TEN_MINUTES })
  const [exitCode] = await once(child, 'exit')
  assert.equal(exitCode, 0)
  const fetched = new Map<string, ReadonlyMap<string, object>>()
  for (const file of readdirSync(folder)) {
    const [, type] = /^([A-Z]\w+)\.\d+\.ndjson$/.exec(file) ?? []
    if (type === undefined) continue
    const lines = parseLines(readFileSync(join(folder, file), 'utf8'), place.fhirUrl)
    assert.equal(new Set(lines.keys()).size, lines.size)
    fetched.set(type, new Map([...(fetched.get(type) ?? []), ...lines]))
  }
  return fetched
}

async function hasEnded(place: Place): Promise<void> {
  assert.match(await succeed(place, 'bulk-export list'), /No app exports data/)
}

describe(`smart-fetch ${VERSION}`, { timeout: 2 * TEN_MINUTES }, () => {
  it('exports the resources of the embedded server, with their content', async () => {
    const servers = await start({ SMART_SAMPLE_PATIENTS: '60', SMART_FHIR_EXPORT_FILE_RESOURCES: '500' })
    const { place } = servers
    try {
      await succeed(place, 'data export own')
      const fetched = await fetchAll(place, 'fetched', ['--no-default-filters'])
      assert.ok(fetched.size > 10)
      for (const [type, resources] of fetched)
        assert.deepEqual(
          resources,
          parseLines(readFileSync(join(place.folder, `own/${type}.ndjson`), 'utf8'), place.fhirUrl),
          type,
        )
      await hasEnded(place)
    } finally {
      await stop(servers)
    }
  })

  describe('through the gateway', () => {
    let upstream: Upstream | undefined
    let servers: Awaited<ReturnType<typeof start>>
    let url = given ?? ''
    before(async () => {
      if (given === undefined) {
        const [port = 0] = await freePorts(1)
        upstream = await startUpstream(port)
        url = upstream.url
      }
      servers = await start({ SMART_FHIR_UPSTREAM_URL: url })
    })
    after(async () => {
      await stop(servers)
      await upstream?.close()
    })

    it(`exports the resources that ${given ?? 'the upstream'} shows`, async () => {
      const fetched = await fetchAll(servers.place, 'fetched')
      assert.ok(fetched.size > 0)
      for (const [type, resources] of fetched) {
        const search = type === 'Observation' ? `${type}?category=${CATEGORIES}` : type
        assert.deepEqual(resources, await listResources(url, search), type)
      }
      await hasEnded(servers.place)
    })
  })
})
