import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import {
  endpointFaults,
  findSection,
  listApiRoutes,
  listDocumentedRoutes,
} from '../scripts/checks/endpoints.ts'
import { readConfiguration } from '../src/config/index.ts'
import { listRoutes } from '../src/web/http/index.ts'
import { type Stack, startStack } from './support/stack.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const PAGE = 'docs/endpoints.md'
const text = read(PAGE)
/** Some paths contain a hash of the content. */
function served(app: FastifyInstance) {
  return listRoutes(app).map(({ method, path }) => ({ method, path: path.replace(/[0-9a-f]{16}/, ':hash') }))
}

const common = listDocumentedRoutes(findSection(text, 'All servers'))

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '0' } })
})
after(() => stack?.close())

describe(PAGE, () => {
  for (const [name, heading, api] of [
    ['auth', 'Auth server', 'docs/administration-api.md'],
    ['app', 'App server', 'docs/session-api.md'],
  ] as const) {
    it(`lists exactly the paths of the ${name} server (SERVICE-4)`, () => {
      const own = listDocumentedRoutes(findSection(text, heading))
      const listed = [...common, ...own, ...listApiRoutes(read(api))]
      assert.deepEqual(endpointFaults(PAGE, name, listed, served(stack[name])), [])
    })
  }

  it('lists the paths of the FHIR server outside its base URL', () => {
    const beside = served(stack.fhir).filter(({ path }) => !path.startsWith('/fhir'))
    assert.deepEqual(endpointFaults(PAGE, 'fhir', common, beside), [])
  })
})

describe('docs/production.md', () => {
  const page = read('docs/production.md')

  it('has settings with which the servers start', () => {
    const [, block = ''] = /^```sh\n(# \/etc\/sallyport\.env[\s\S]*?)^```/m.exec(page) ?? []
    const lines = [...block.replaceAll('…', 'x'.repeat(32)).matchAll(/^(\w+)='?([^'\n]*)/gm)]
    const env = Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value]))
    const { settings, warnings, problems } = readConfiguration(env, '/')
    assert.deepEqual([settings.issuerUrl, warnings, problems], ['https://auth.ehr.example', [], []])
  })

  it('starts a server by the unit, which systemd rates below 3', t => {
    const unit = new URL('../deploy/systemd/sallyport@.service', import.meta.url)
    assert.match(readFileSync(unit, 'utf8'), /^ExecStart=\/opt\/sallyport\/bin\/sallyport start %i$/m)
    const rated = spawnSync('systemd-analyze', [
      'security',
      '--offline=true',
      '--threshold=29',
      fileURLToPath(unit),
    ])
    if (rated.error || /unrecognized option/.test(String(rated.stderr))) {
      process.stderr.write('NOT RATED: the unit of systemd, without systemd-analyze 250 or later\n')
      return t.skip('there is no systemd-analyze 250 or later')
    }
    assert.equal(rated.status, 0, String(rated.stdout))
  })

  it('has units for several instances of a server', () => {
    const [, script = ''] = /^```sh\ncd \/etc\/systemd\/system\n([\s\S]*?)^```/m.exec(page) ?? []
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-units-'))
    cpSync(new URL('../deploy/systemd', import.meta.url), folder, { recursive: true })
    assert.equal(spawnSync('/bin/sh', ['-e', '-c', script], { cwd: folder }).status, 0)
    for (const server of ['auth', 'fhir', 'app']) {
      const unit = readFileSync(join(folder, `sallyport-${server}@.service`), 'utf8')
      assert(unit.includes(`\nEnvironment=SMART_${server.toUpperCase()}_PORT=%i\n`))
      assert(unit.includes(`sallyport start ${server}\n`))
    }
    rmSync(folder, { recursive: true })
  })
})
