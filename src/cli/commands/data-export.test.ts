import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type Given, sallyport } from '../../../test/support/command-line.ts'
import { openRepository } from '../../backends/sqlite/index.ts'
import { readSettings } from '../../config/index.ts'
import { samplePatients } from '../../sample-patients/index.ts'

const baseUrl = 'http://localhost:8080/fhir'
const subject = (id: string) => ({ subject: { reference: `Patient/${id}` } })
const binary = (id: string) => ({ resourceType: 'Binary', id, contentType: 'text/plain', data: 'aGk=' })
const observation = (id: string, patient: string, more: object = {}) => ({
  resourceType: 'Observation',
  id,
  status: 'final',
  code: { text: 'x' },
  ...subject(patient),
  ...more,
})

/** Small data of two patients. */
const SMALL = [
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'bob' },
  {
    resourceType: 'Group',
    id: 'g',
    type: 'person',
    actual: true,
    member: [
      { entity: { reference: 'Patient/ann' } },
      { entity: { reference: 'Patient/bob' }, inactive: true },
    ],
  },
  observation('a', 'ann'),
  observation('b', 'bob'),
  observation('both', 'ann', { performer: [{ reference: 'Patient/bob' }] }),
  binary('of-ann'),
  binary('other'),
  {
    resourceType: 'DocumentReference',
    id: 'd',
    status: 'current',
    ...subject('ann'),
    content: [{ attachment: { url: 'Binary/of-ann' } }],
  },
  { resourceType: 'Practitioner', id: 'dr' },
]

async function setUp(resources: readonly object[] = SMALL) {
  const cwd = mkdtempSync(join(tmpdir(), 'sallyport-export-'))
  after(() => rmSync(cwd, { recursive: true, force: true }))
  const run = (line: string, { env = {}, ...given }: Given = {}) =>
    sallyport(line.split(' '), { cwd, env: { SMART_SAMPLE_PATIENTS: '0', ...env }, ...given })
  writeFileSync(join(cwd, 'some.ndjson'), resources.map(it => JSON.stringify(it)).join('\n'))
  const imported = await run('data import some.ndjson')
  assert.equal(imported.exitCode, 0, imported.stdout)
  const other = { env: { SMART_DATA_DIR: join(cwd, 'other') } }
  return { cwd, run, other }
}

/** The content of all resources, without what every server makes itself. */
function readAll(dataDir: string): ReadonlyMap<string, unknown> {
  const repository = openRepository({ file: join(dataDir, 'fhir.db'), baseUrl })
  const rows = repository.database.rows('SELECT content FROM resource WHERE deleted = 0', [])
  repository.close()
  return new Map(
    rows.map(([content]) => {
      const { meta, ...resource } = JSON.parse(String(content))
      const { versionId: _, lastUpdated: __, ...kept } = meta
      return [`${resource.resourceType}/${resource.id}`, { ...resource, meta: kept }]
    }),
  )
}

function listLines(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter(name => name.endsWith('.ndjson'))
    .flatMap(name => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'))
    .map(line => JSON.parse(line))
    .map(({ resourceType, id }) => `${resourceType}/${id}`)
    .sort()
}

describe('sallyport data export', () => {
  it('writes files that fill an empty server with the same resources, plain and compressed (CLI-8)', async () => {
    const { samplePatients: count } = readSettings({}, '/nowhere').fhir
    const sample = [...samplePatients({ now: Date.UTC(2026, 10, 13), count })]
    const { cwd, run } = await setUp(sample)
    const expected = readAll(join(cwd, 'data'))
    assert.equal(expected.size, sample.length)
    const all = sample.length.toLocaleString('en')
    for (const [target, options] of [
      ['out', ''],
      ['packed', '--gzip '],
    ]) {
      const { exitCode, stdout } = await run(`data export ${options}${target}`)
      assert.deepEqual([exitCode, stdout], [0, `Exported ${all} resources to ${target}\n`])
      const dataDir = join(cwd, `data of ${target}`)
      const imported = await run(`data import ${target}`, { env: { SMART_DATA_DIR: dataDir } })
      assert.match(imported.stdout, new RegExp(`created +${all}\n`))
      assert.deepEqual([imported.exitCode, readAll(dataDir)], [0, expected])
    }
    assert.match((await run('data import out')).stdout, new RegExp(`unchanged +${all}\n +refused +0\n$`))
  })

  it('names and counts the files of a folder in a manifest, with permissions for their owner alone (CLI-8)', async () => {
    const { cwd, run } = await setUp()
    assert.equal((await run('data export new/out --gzip')).exitCode, 0)
    const out = join(cwd, 'new/out')
    const types = [...new Set(SMALL.map(it => it.resourceType))]
    assert.deepEqual(
      readdirSync(out).sort(),
      [...types.map(type => `${type}.ndjson.gz`), 'manifest.json'].sort(),
    )
    const { output, request } = JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8'))
    assert.equal(request, `${baseUrl}/$export`)
    for (const { type, url, count } of output) {
      const lines = gunzipSync(readFileSync(join(out, url)))
        .toString()
        .trimEnd()
        .split('\n')
      assert.equal(lines.length, count)
      assert(lines.every(line => JSON.parse(line).resourceType === type))
    }
    for (const folder of [out, join(cwd, 'new')]) assert.equal(statSync(folder).mode & 0o777, 0o700)
    for (const name of readdirSync(out)) assert.equal(statSync(join(out, name)).mode & 0o777, 0o600, name)
  })

  it('writes one file if its name says so, compressed or not (CLI-8)', async () => {
    const { cwd, run } = await setUp()
    for (const name of ['all.ndjson', 'all.ndjson.gz']) {
      assert.equal((await run(`data export ${name}`)).exitCode, 0)
      const bytes = readFileSync(join(cwd, name))
      const text = name.endsWith('.gz') ? gunzipSync(bytes) : bytes
      assert.equal(text.toString().trimEnd().split('\n').length, SMALL.length)
      assert.match((await run(`data import ${name}`)).stdout, new RegExp(`unchanged +${SMALL.length}\n`))
    }
    assert.deepEqual(readdirSync(cwd).sort(), ['all.ndjson', 'all.ndjson.gz', 'data', 'some.ndjson'])
  })

  it('selects patients, a Group, types and a time as $export does, with the Binaries of documents (CLI-8)', async () => {
    const { cwd, run } = await setUp()
    const ofAnn = ['Binary/of-ann', 'DocumentReference/d', 'Observation/a', 'Patient/ann', 'Practitioner/dr']
    for (const [options, expected] of [
      ['--patient ann', ofAnn],
      ['--group g', [...ofAnn, 'Observation/both'].sort()],
      ['--group g --patient ann --type Patient', ['Patient/ann']],
      [
        '--patient ann --patient bob --type Observation',
        ['Observation/a', 'Observation/b', 'Observation/both'],
      ],
      [
        '--type Patient,Binary --type Group',
        ['Binary/of-ann', 'Binary/other', 'Group/g', 'Patient/ann', 'Patient/bob'],
      ],
      ['--since 1h', SMALL.map(it => `${it.resourceType}/${it.id}`).sort()],
      ['--since 2999-01-01', []],
    ] as const) {
      const { exitCode, stderr } = await run(`data export ${options} out`)
      assert.deepEqual([exitCode, stderr, listLines(join(cwd, 'out'))], [0, '', expected], options)
      rmSync(join(cwd, 'out'), { recursive: true })
    }
    for (const [options, why] of [
      ['--patient nobody', 'Cannot export Patient/nobody: it is not a patient of this export'],
      ['--group g --patient bob', 'Cannot export Patient/bob: it is not a patient of this export'],
      ['--group none', 'Cannot find Group/none'],
      ['--type AuditEvent', 'Cannot export AuditEvent: this export does not have the type'],
    ]) {
      const { exitCode, stderr } = await run(`data export ${options} out`)
      assert.equal(exitCode, 1)
      assert.ok(stderr.startsWith(`Cannot export to out: ${why}`), stderr)
    }
    assert.equal(readdirSync(cwd).includes('out'), false)
  })

  it('has the resources of its start, without those that were deleted (CLI-8)', async () => {
    const { cwd, run } = await setUp()
    const repository = openRepository({ file: join(cwd, 'data/fhir.db'), baseUrl })
    const stored = repository.find('Practitioner', 'dr')
    assert.ok(stored)
    repository.database.transaction(() => repository.remove(stored))
    repository.load([{ resourceType: 'Patient', id: 'ann', active: true }])
    repository.close()
    assert.equal((await run('data export out')).exitCode, 0)
    assert.equal(listLines(join(cwd, 'out')).includes('Practitioner/dr'), false)
    assert.match(readFileSync(join(cwd, 'out/Patient.ndjson'), 'utf8'), /"active":true/)
  })

  it('is recorded, also for the patients whose data are in the files (CLI-8)', async () => {
    const { run } = await setUp()
    await run('data export --type Observation out')
    const { stdout } = await run('audit')
    assert.match(stdout, / {2}sallyport data export {2}by=/)
    assert.match(stdout, / {2}sallyport data export {2}patients=ann,bob .*Export by a command/)
  })

  it('overwrites no file, needs an empty folder, and leaves nothing behind (CLI-8)', async () => {
    const { cwd, run } = await setUp()
    mkdirSync(join(cwd, 'full'))
    writeFileSync(join(cwd, 'full/note.txt'), '')
    writeFileSync(join(cwd, 'all.ndjson'), '')
    for (const [target, why] of [
      ['full', 'the folder is not empty: it has note.txt'],
      ['all.ndjson', 'the file exists'],
      ['all.ndjson/below', 'a part of the path is not a folder'],
    ]) {
      const { exitCode, stdout, stderr } = await run(`data export ${target}`)
      assert.deepEqual([exitCode, stdout, stderr], [1, '', `Cannot export to ${target}: ${why}\n`])
    }
    assert.deepEqual(readdirSync(join(cwd, 'full')), ['note.txt'])
    assert.equal(readFileSync(join(cwd, 'all.ndjson'), 'utf8'), '')
  })

  it('does not export while the trail cannot record it (CLI-8)', async () => {
    const { cwd, run } = await setUp()
    const env = { SMART_DATABASE_URL: `sqlite:${join(cwd, 'none/sallyport.db')}` }
    writeFileSync(join(cwd, 'none'), '')
    const { exitCode, stdout } = await run('data export out', { env })
    assert.deepEqual([exitCode, stdout], [1, ''])
    assert.equal(readdirSync(cwd).includes('out'), false)
  })

  it('does not export from an upstream or before there are data', async () => {
    const { cwd, run } = await setUp()
    const upstream = { SMART_FHIR_UPSTREAM_URL: 'http://localhost:1/fhir' }
    assert.match(
      (await run('data export x', { env: upstream })).stderr,
      /^Cannot export: SMART_FHIR_UPSTREAM_URL is set, .* --from\n$/,
    )
    const none = { SMART_DATA_DIR: join(cwd, 'none') }
    assert.match(
      (await run('data export x', { env: none })).stderr,
      /^Cannot export: there is no \S+fhir\.db\n$/,
    )
  })

  it('says which option is wrong', async () => {
    const { run } = await setUp([])
    for (const [options, why] of [
      ['--type Pateint', /^Cannot use --type Pateint: it is not a type of FHIR R4\n$/],
      ['--patient Patient/1', /^Cannot use Patient\/1: expected the id of a resource, such as patient-1\n$/],
      ['--since yesterday', /^Cannot use --since: expected /],
      ['--client me', /^Cannot use --client without --from\n$/],
      ['--from ftp://host/fhir', /^Cannot use --from: it is not an http or https URL\n$/],
    ] as const) {
      const { exitCode, stderr } = await run(`data export ${options} out`)
      assert.equal(exitCode, 2, options)
      assert.match(stderr, why)
    }
  })
})
