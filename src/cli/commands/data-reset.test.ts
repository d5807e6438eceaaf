import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { type Given, sallyport, terminal } from '../../../test/support/command-line.ts'
import { openRepository } from '../../backends/sqlite/index.ts'
import { samplePatients } from '../../sample-patients/index.ts'

const sample = [...samplePatients({ now: Date.UTC(2026, 10, 13), count: 2 })]
const OWN = { resourceType: 'Patient', id: 'own', multipleBirthInteger: 2 }

async function setUp() {
  const cwd = mkdtempSync(join(tmpdir(), 'sallyport-reset-'))
  after(() => rmSync(cwd, { recursive: true, force: true }))
  const run = (line: string, { env = {}, ...given }: Given = {}) =>
    sallyport(line.split(' '), { cwd, env: { SMART_SAMPLE_PATIENTS: '0', ...env }, ...given })
  writeFileSync(join(cwd, 'some.ndjson'), [...sample, OWN].map(it => JSON.stringify(it)).join('\n'))
  const imported = await run('data import some.ndjson')
  assert.equal(imported.exitCode, 0, imported.stdout)
  const open = () =>
    openRepository({ file: join(cwd, 'data', 'fhir.db'), baseUrl: 'http://localhost:8080/fhir' })
  return { cwd, run, open }
}

describe('sallyport data reset', () => {
  const addOwn = async (run: Awaited<ReturnType<typeof setUp>>['run']) => {
    await run('client add --id my-app --public --redirect-uri http://localhost:1/cb --scope openid')
    await run('clinician add --username ada --display-name Ada --fhir-user p1', { stdin: 'correct horse' })
  }
  const listOwn = async (run: Awaited<ReturnType<typeof setUp>>['run']) =>
    `${(await run('client list')).stdout}${(await run('clinician list')).stdout}`

  it('creates the sample patients again while a server runs, and keeps apps and clinicians (CLI-9)', async () => {
    const { run, open } = await setUp()
    await addOwn(run)
    const running = open()
    const { exitCode, stderr } = await run('data reset --yes', { env: { SMART_SAMPLE_PATIENTS: '1' } })
    assert.deepEqual([exitCode, stderr], [0, 'Creating 1 sample patient…\n'])
    assert.equal(running.find('Patient', 'own'), undefined)
    assert.equal(running.find('Patient', 'patient-2'), undefined)
    assert.equal(running.find('Patient', 'patient-1')?.version, 1)
    running.close()
    assert.match(await listOwn(run), /^my-app .*^ada /ms)
    assert.match((await run('audit')).stdout, / {2}sallyport data reset {2}by=/)
  })

  it('also removes apps and clinicians with --all, and creates the demo app and the test login again (CLI-9)', async () => {
    const { run, open } = await setUp()
    await addOwn(run)
    assert.equal((await run('data reset --all --yes')).exitCode, 0)
    const listed = await listOwn(run)
    assert.doesNotMatch(listed, /^(my-app|ada) /m)
    assert.match(listed, /^sallyport-app .*^clinician /ms)
    assert.match(
      (await run('audit')).stdout,
      /client add my-app {2}by=.* {2}sallyport data reset --all {2}by=/s,
    )
    const repository = open()
    assert.equal(repository.count(), 0)
    repository.close()
  })

  it('asks first, and changes nothing without a yes, off loopback or with an upstream (CLI-9)', async () => {
    const { run, open } = await setUp()
    assert.equal((await run('data reset')).exitCode, 2)
    const declined = await run('data reset', { stdin: terminal('no\n') })
    assert.deepEqual(
      [declined.exitCode, declined.stderr],
      [1, 'Remove all FHIR resources? Type yes: Not reset\n'],
    )
    for (const env of [{ SMART_BIND: '0.0.0.0' }, { SMART_FHIR_UPSTREAM_URL: 'http://localhost:1/fhir' }])
      assert.match((await run('data reset --yes', { env })).stderr, /^Cannot reset/)
    const repository = open()
    assert.equal(repository.count(), sample.length + 1)
    repository.close()
    assert.equal((await run('data reset', { stdin: terminal('yes\n') })).exitCode, 0)
  })
})
