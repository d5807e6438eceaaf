import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openRepository } from '../backends/sqlite/index.ts'
import { samplePatients } from '../sample-patients/index.ts'
import { findFiles, type ImportProgress, importFiles } from './index.ts'
import { temporaryFolder } from './testing/files.ts'

const baseUrl = 'http://localhost:8080/fhir'
const uuid = (digit: number) => `${digit}1111111-1111-4111-8111-111111111111`
const json = (value: unknown) => JSON.stringify(value)
const pretty = (value: unknown) => JSON.stringify(value, null, 2)
const patient = (id: string, more: object = {}) => ({ resourceType: 'Patient', id, ...more })

/** Imports files with these contents, named in this order, into a new database. */
function createFolder() {
  const folder = temporaryFolder()
  const repository = openRepository({ file: ':memory:', baseUrl })
  return {
    repository,
    write: folder.write,
    async run(
      names: readonly string[],
      options: { lineLimit?: number; documentLimit?: number; onProgress?: (it: ImportProgress) => void } = {},
    ) {
      const { files } = await findFiles(names, folder.path)
      return importFiles({ files, repository, ...options })
    },
    read: (type: string, id: string) => {
      const stored = repository.find(type, id)
      return stored && (JSON.parse(stored.content) as Record<string, { reference?: string }>)
    },
  }
}

describe('importFiles', () => {
  it('imports NDJSON, compressed or not, and changes nothing in a second import', async () => {
    const { write, run, repository } = createFolder()
    const text = [...samplePatients({ now: 0, count: 3 })].map(json).join('\n')
    write('a.ndjson', text)
    write('b.ndjson.gz', gzipSync(json(patient('packed'))))
    const first = await run(['.'])
    const count = text.split('\n').length + 1
    assert.deepEqual(numbers(first), { created: count, updated: 0, unchanged: 0, refused: 0 })
    assert.deepEqual(numbers(await run(['.'])), { created: 0, updated: 0, unchanged: count, refused: 0 })
    assert.equal(repository.count(), count)
  })

  it('keeps every digit of decimals, and recognizes a resource without an id', async () => {
    const { write, run, repository } = createFolder()
    const line = (id: string, value: string) =>
      `{"resourceType":"Observation",${id}"status":"final","code":{"text":"c"},"valueQuantity":{"value":${value}}}`
    const kept = () =>
      repository.database
        .rows('SELECT content FROM resource ORDER BY rid', [])
        .map(([content]) => /"value":([^}]*)/.exec(String(content))?.[1])
    write('a.ndjson', `${line('"id":"1",', '7.00')}\n${line('', '12345678901234567.89')}`)
    const entry = `{"resource":${line('"id":"2",', '1.0e3')}}`
    write('b.json', `{"resourceType":"Bundle","type":"collection",\n"entry":[${entry}]}`)
    assert.equal((await run(['.'])).created, 3)
    assert.deepEqual(kept(), ['7.00', '12345678901234567.89', '1.0e3'])
    assert.deepEqual(numbers(await run(['.'])), { created: 0, updated: 0, unchanged: 3, refused: 0 })
    write('a.ndjson', line('"id":"1",', '7.0'))
    assert.equal((await run(['a.ndjson'])).updated, 1)
    assert.deepEqual(kept(), ['7.0', '12345678901234567.89', '1.0e3'])
  })

  it('refuses AuditEvents, which are served from the audit trail, and imports the rest (AUDIT-6)', async () => {
    const { write, run, repository } = createFolder()
    const event = {
      resourceType: 'AuditEvent',
      id: 'e',
      type: { code: 'rest' },
      recorded: '2026-01-01T00:00:00Z',
      agent: [{ requestor: true }],
      source: { observer: { display: 'x' } },
    }
    write('a.ndjson', `${json(event)}\n${json(patient('1'))}`)
    const entry = [{ resource: event }, { resource: patient('2') }]
    write('b.json', pretty({ resourceType: 'Bundle', type: 'collection', entry }))
    const report = await run(['.'])
    assert.deepEqual(numbers(report), { created: 2, updated: 0, unchanged: 0, refused: 2 })
    assert.equal(repository.find('AuditEvent', 'e'), undefined)
    assert.match(report.reasons[0]?.text ?? '', /^AuditEvent: Not imported: the server serves AuditEvents/)
    assert.deepEqual(report.reasons[0]?.places, ['a.ndjson:1', 'b.json, entry 1'])
  })

  it('updates changed resources', async () => {
    const { write, run, read } = createFolder()
    write('a.ndjson', `${json(patient('1'))}\n${json(patient('2'))}`)
    await run(['a.ndjson'])
    write('a.ndjson', `${json(patient('1', { active: true }))}\n${json(patient('2'))}`)
    assert.deepEqual(numbers(await run(['a.ndjson'])), { created: 0, updated: 1, unchanged: 1, refused: 0 })
    assert.equal(read('Patient', '1')?.active, true)
  })

  for (const type of ['collection', 'transaction', 'batch', 'searchset', 'document']) {
    for (const [form, write] of Object.entries({
      pretty,
      'one line': json,
      packed: (it: unknown) => gzipSync(pretty(it)),
    })) {
      it(`imports a ${type} Bundle (${form}), and resolves references between its entries`, async () => {
        const place = createFolder()
        place.write('bundle.json', write(makeBundle(type)))
        assert.deepEqual(numbers(await place.run(['bundle.json'])), {
          created: 2,
          updated: 0,
          unchanged: 0,
          refused: 0,
        })
        assert.equal(place.read('Condition', uuid(1))?.subject?.reference, `Patient/${uuid(2)}`)
        assert.equal((await place.run(['bundle.json'])).unchanged, 2)
      })
    }
  }

  it('imports Bundles in the lines of NDJSON', async () => {
    const { write, run, read } = createFolder()
    write('bundles.ndjson', `${json(makeBundle('batch'))}\n${json(patient('own'))}`)
    assert.equal((await run(['bundles.ndjson'])).created, 3)
    assert.equal(read('Condition', uuid(1))?.subject?.reference, `Patient/${uuid(2)}`)
  })

  it('imports arrays and single resources, including a List, which has entries', async () => {
    const { write, run, read } = createFolder()
    write('patient.json', pretty(patient('single')))
    write(
      'list.json',
      pretty({
        resourceType: 'List',
        id: 'l',
        status: 'current',
        mode: 'working',
        entry: [{ item: { display: 'x' } }],
      }),
    )
    write('array.json', pretty([patient('x'), patient('y')]))
    assert.deepEqual(numbers(await run(['.'])), { created: 4, updated: 0, unchanged: 0, refused: 0 })
    assert.deepEqual(read('List', 'l')?.entry, [{ item: { display: 'x' } }])
  })

  it('assigns a stable id to a resource without one', async () => {
    const { write, run, repository } = createFolder()
    write('a.ndjson', json({ resourceType: 'Patient', active: true }))
    await run(['a.ndjson'])
    assert.deepEqual(numbers(await run(['a.ndjson'])), { created: 0, updated: 0, unchanged: 1, refused: 0 })
    assert.equal(repository.count(), 1)
  })

  it('resolves conditional references whatever the order of the files', async () => {
    const { write, run, read } = createFolder()
    const referring = makeBundle('transaction', { reference: 'Practitioner?identifier=https://x.example|7' })
    write('1-asks.json', pretty(referring))
    write(
      '2-answers.ndjson',
      json({
        resourceType: 'Practitioner',
        id: 'p7',
        identifier: [{ system: 'https://x.example', value: '7' }],
      }),
    )
    const report = await run(['.'])
    assert.deepEqual(numbers(report), { created: 3, updated: 0, unchanged: 0, refused: 0 })
    assert.equal(report.unresolved, 0)
    assert.equal(read('Condition', uuid(1))?.asserter?.reference, 'Practitioner/p7')
  })

  it('keeps a conditional reference without a match, and reports it', async () => {
    const { write, run } = createFolder()
    write('asks.json', pretty(makeBundle('transaction', { reference: 'Practitioner?identifier=none' })))
    const { created, unresolved } = await run(['asks.json'])
    assert.deepEqual({ created, unresolved }, { created: 2, unresolved: 1 })
  })

  it('reports its progress, up to all bytes', async () => {
    const { write, run } = createFolder()
    write('a.ndjson.gz', gzipSync([...samplePatients({ now: 0, count: 12 })].map(json).join('\n')))
    const seen: ImportProgress[] = []
    const { created } = await run(['.'], { onProgress: it => seen.push(it) })
    assert.ok(seen.length >= 2)
    assert.deepEqual(seen.at(-1), { read: seen[0]?.total, total: seen[0]?.total, resources: created })
  })
})

describe('importFiles with malformed input', () => {
  it('groups refused resources by reason with the first positions, and reports no values', async () => {
    const { write, run } = createFolder()
    const bad = Array.from({ length: 5 }, (_, at) =>
      json(patient(`b${at}`, { birthDate: 'Rumpelstiltskin' })),
    )
    write(
      'bad.ndjson',
      [...bad, json({ resourceType: 'Person3' }), 'Rumpelstiltskin', '42', json(patient('good'))].join('\n'),
    )
    const report = await run(['bad.ndjson'])
    assert.deepEqual(numbers(report), { created: 1, updated: 0, unchanged: 0, refused: 8 })
    const [first] = report.reasons
    assert.match(String(first?.text), /^Patient\.birthDate: /)
    assert.equal(first?.count, 5)
    assert.deepEqual(
      first?.places,
      [1, 2, 3].map(line => `bad.ndjson:${line}`),
    )
    assert.doesNotMatch(json(report), /Rumpel/)
  })

  for (const [name, file, content, refused] of [
    [
      'a byte order mark and CRLF',
      'a.ndjson',
      `\ufeff${json(patient('1'))}\r\n\r\n${json(patient('2'))}\r\n`,
      0,
    ],
    ['a line that is not JSON', 'a.ndjson', `${json(patient('1'))}\n{"resource\n${json(patient('2'))}`, 1],
    [
      'a line that is not UTF-8',
      'a.ndjson',
      Buffer.concat([
        Buffer.from(`${json(patient('1'))}\n`),
        Buffer.of(0x22, 0xfc, 0x22),
        Buffer.from(`\n${json(patient('2'))}`),
      ]),
      1,
    ],
    [
      'a line beyond the limit',
      'a.ndjson',
      `${json(patient('1'))}\n${json(patient('x', { language: 'x'.repeat(9000) }))}\n${json(patient('2'))}`,
      1,
    ],
    [
      'a type that is none',
      'a.ndjson',
      `${json(patient('1'))}\n${json({ resourceType: 'patient' })}\n${json(patient('2'))}`,
      1,
    ],
    [
      'a DELETE',
      'a.json',
      pretty({
        resourceType: 'Bundle',
        type: 'batch',
        entry: [
          { resource: patient('1') },
          { request: { method: 'DELETE', url: 'Patient/2' } },
          { resource: patient('2') },
        ],
      }),
      1,
    ],
  ] as const) {
    it(`continues after ${name}`, async () => {
      const place = createFolder()
      place.write(file, content)
      assert.deepEqual(numbers(await place.run([file], { lineLimit: 8000 })), {
        created: 2,
        updated: 0,
        unchanged: 0,
        refused,
      })
    })
  }

  it('refuses a history as a whole', async () => {
    const { write, run } = createFolder()
    write('h.json', pretty(makeBundle('history')))
    const report = await run(['h.json'])
    assert.deepEqual(numbers(report), { created: 0, updated: 0, unchanged: 0, refused: 1 })
    assert.match(String(report.reasons[0]?.text), /history is not imported/)
  })

  it('imports the complete part of a truncated file, reports where it ends, and reads the other files', async () => {
    const { write, run } = createFolder()
    const packed = gzipSync([...samplePatients({ now: 0, count: 12 })].map(json).join('\n'))
    write('1.ndjson.gz', packed.subarray(0, packed.length / 2))
    write('2.json', pretty(makeBundle('batch')).slice(0, -200))
    write('3.ndjson', json(patient('last')))
    const report = await run(['.'])
    assert.ok(report.created > 200 && report.refused === 0, json(numbers(report)))
    const [lines, document] = report.unreadable
    assert.match(json(lines), /"1\.ndjson\.gz".*cut off/)
    assert.ok((lines?.line ?? 0) > 200)
    assert.match(json(document), /"2\.json".*cut off/)
  })

  it('imports nothing of a Bundle that is cut off or too large, and says what to do (CLI-5)', async () => {
    const { write, run, repository } = createFolder()
    const bundle = pretty(makeBundle('batch'))
    write('1-cut.json', bundle.slice(0, -3))
    write('2-large.json', gzipSync(bundle + ' '.repeat(2 * 1024 * 1024)))
    const { created, unreadable } = await run(['.'], { documentLimit: 2 * 1024 * 1024 })
    assert.equal(created, 0)
    assert.equal(repository.count(), 0)
    assert.deepEqual(unreadable, [
      { file: '1-cut.json', reason: 'It is not JSON text, or it is cut off' },
      {
        file: '2-large.json',
        reason:
          'It is a JSON document of more than 2 MiB. Split the Bundle, or write one resource per line (NDJSON)',
      },
    ])
    write('2-large.json', gzipSync(bundle + ' '.repeat(1024 * 1024)))
    assert.equal((await run(['2-large.json'], { documentLimit: 2 * 1024 * 1024 })).created, 2)
  })

  it('reports files that are not JSON, and ignores an empty file', async () => {
    const { write, run } = createFolder()
    write('binary.ndjson', Buffer.from([0, 1, 2, 3, 0xff]))
    write('zip.json', 'PK\u0003\u0004')
    write('empty.ndjson', '')
    write('short.ndjson.gz', gzipSync('x').subarray(0, 5))
    write('fine.ndjson', json(patient('1')))
    const report = await run(['.'])
    assert.equal(report.created, 1)
    assert.deepEqual(
      report.unreadable.map(it => it.file),
      ['binary.ndjson', 'short.ndjson.gz', 'zip.json'],
    )
  })
})

function numbers({ created, updated, unchanged, refused }: Awaited<ReturnType<typeof importFiles>>) {
  return { created, updated, unchanged, refused }
}

/** Two entries, of which the first refers to the second. */
function makeBundle(type: string, asserter?: object) {
  const condition = {
    resourceType: 'Condition',
    subject: { reference: `urn:uuid:${uuid(2)}` },
    ...(asserter && { asserter }),
  }
  const request =
    type === 'transaction' || type === 'batch' ? { request: { method: 'POST', url: 'Condition' } } : {}
  return {
    resourceType: 'Bundle',
    type,
    entry: [
      { fullUrl: `urn:uuid:${uuid(1)}`, resource: condition, ...request },
      { fullUrl: `urn:uuid:${uuid(2)}`, resource: { resourceType: 'Patient', active: true }, ...request },
    ],
  }
}
