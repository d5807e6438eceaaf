import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  BASE,
  condition,
  createAuthenticator,
  patient,
  patientAccess,
  readIds,
  startFhir,
} from '../testing/fhir.ts'
import { openDatabase } from './database.ts'
import { OTHER_WORDS } from './names.ts'
import { openRepository } from './repository.ts'
import { MIGRATIONS } from './schema.ts'

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'fhir-'))
})
after(() => rmSync(folder, { recursive: true }))

const open = (file: string, baseUrl = BASE) => openRepository({ file: join(folder, file), baseUrl })

describe('openRepository', () => {
  it('keeps all data after a restart', () => {
    const first = open('fhir.db')
    first.load([patient('1', { gender: 'male' })])
    first.close()
    const second = open('fhir.db')
    assert.equal(JSON.parse(second.find('Patient', '1')?.content ?? '').gender, 'male')
    assert.equal(second.count(), 1)
    second.close()
  })

  it('uses a write-ahead log and waits for the disk', () => {
    const { database } = open('modes.db')
    assert.deepEqual(database.rows('PRAGMA journal_mode', []), [['wal']])
    assert.deepEqual(database.rows('PRAGMA synchronous', []), [[2]])
    database.close()
  })

  it('rebuilds the index if the FHIR base changes, because it decides which references are local', async () => {
    const elsewhere = 'http://moved.test/fhir'
    const absolute = { ...condition('c', 'x'), subject: { reference: `${elsewhere}/Patient/1` } }
    const first = open('base.db')
    first.load([patient('1'), absolute])
    first.load([{ ...absolute, recordedDate: '2020' }])
    first.close()
    const search = async (baseUrl: string) => {
      const fhir = await startFhir({ dataFile: join(folder, 'base.db'), baseUrl })
      const found = readIds(await fhir(`GET Condition?patient=Patient/1`))
      const compartment = readIds(await fhir(`GET Patient/1/Condition`))
      const versions = (await fhir('GET Condition/c/_history')).body.total
      await fhir.close()
      return [found, compartment, versions]
    }
    assert.deepEqual(await search(BASE), [[], [], 2])
    assert.deepEqual(await search(elsewhere), [['c'], ['c'], 2])
    assert.deepEqual(await search(BASE), [[], [], 2])
  })

  it('builds the index again if an older version built it', async () => {
    const first = open('earlier.db')
    first.load([condition('c', 'ann', { contained: [condition('inner', 'bob')] }), condition('own', 'ann')])
    first.database.exec('DELETE FROM contained_patient')
    first.database.exec(`UPDATE setting SET value = '1 ${BASE}' WHERE name = 'index'`)
    first.close()
    const fhir = await startFhir({
      dataFile: join(folder, 'earlier.db'),
      guard: createAuthenticator({ ann: patientAccess('ann') }),
    })
    assert.deepEqual(readIds(await fhir.as('ann')('GET Condition')), ['own'])
    await fhir.close()
  })

  it('continues a load in batches that was interrupted', () => {
    function* listPatients(end: number) {
      for (let at = 0; at < 4_200; at++) {
        if (at === end) throw new Error('interrupted')
        yield patient(`p${at}`)
      }
    }
    const repository = open('batches.db')
    assert.throws(() => repository.loadInBatches('sample', listPatients(4_100)), /interrupted/)
    assert.equal(repository.findInterruptedLoad(), 'sample')
    const stored = repository.count()
    assert.ok(stored > 0 && stored < 4_200, `${stored}`)
    repository.loadInBatches('sample', listPatients(Number.POSITIVE_INFINITY))
    assert.equal(repository.findInterruptedLoad(), undefined)
    assert.equal(repository.count(), 4_200)
    assert.equal(repository.find('Patient', 'p0')?.version, 1)
    repository.close()
  })

  it('refuses tables of another schema, with one line that says what to do', () => {
    const file = join(folder, 'foreign.db')
    const { database } = openRepository({ file, baseUrl: BASE })
    database.exec('ALTER TABLE version RENAME COLUMN method TO verb')
    database.close()
    assert.throws(() => openRepository({ file, baseUrl: BASE }), {
      message:
        /^Cannot open FHIR data in \S+: its schema does not match .*column version\.method is missing\); restore a backup/,
    })
  })

  it('refuses data without one of its indexes', () => {
    const { database } = open('no-index.db')
    database.exec('DROP INDEX version_tid')
    database.close()
    assert.throws(() => open('no-index.db'), /its schema does not match .*\(index version_tid is missing\)/)
  })

  it('accepts data to which a newer version only added (STORE-8)', () => {
    const database = openDatabase(join(folder, 'expanded.db'))
    for (const [table] of database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'", []))
      if (!String(table).startsWith('sqlite_')) database.exec(`ALTER TABLE ${table} ADD COLUMN note TEXT`)
    database.exec("INSERT INTO schema_migration VALUES ('0002-notes', '0001-tables', 0, NULL)")
    database.close()
    const repository = open('expanded.db')
    assert.deepEqual(repository.load([patient('1'), condition('c', '1')]).created, 2)
    repository.close()
  })

  it('never changes a released migration; a new migration adds a line', () => {
    assert.deepEqual(
      MIGRATIONS.map(({ list }) => createHash('sha256').update(list('sqlite').join(';')).digest('hex')),
      [
        '508783064975916be48840b9917693ffcddc7affc8789b718afc697b62d0a9f6',
        '4435f8539ded14fb1eb3589b263a541d3f73410385828c7e29d97187a5dc962c',
      ],
    )
  })

  it('adds the other words of names to data of 0.3.1 as it adds them to new resources', () => {
    const first = open('other-words.db')
    const names = [
      [{ family: 'van Dyk', given: ['Ann Marie', 'Jo'] }, { family: 'Aalto' }],
      [{ text: 'Smith, John', prefix: ['Dr.'] }],
      [{ family: 'Núñez', given: ['Nunez'], text: ',' }],
      undefined,
    ]
    first.load(names.map((name, at) => patient(`${at}`, name && { name })))
    first.load([{ resourceType: 'Practitioner', id: 'p', name: [{ family: 'Lee', given: ['Lee', 'Kim'] }] }])
    first.load([{ resourceType: 'Organization', id: 'o', name: 'No person' }])
    const select = `SELECT t.type, rid, normal, exact FROM string JOIN name t USING (nid)
      WHERE t.code = '${OTHER_WORDS}' ORDER BY rid, normal`
    const written = first.database.rows(select, [])
    first.database.exec(`DELETE FROM string WHERE nid IN (SELECT nid FROM name WHERE code = '${OTHER_WORDS}');
      DELETE FROM name WHERE code = '${OTHER_WORDS}';
      DELETE FROM schema_migration WHERE name = '0002-other-words'`)
    first.close()
    const second = open('other-words.db')
    assert.deepEqual(second.database.rows(select, []), written)
    assert.deepEqual(
      written.map(([, , word]) => word),
      ['ann', 'jo', 'van', 'dr.', 'smith', '', 'kim'],
    )
    second.close()
  })

  it('refuses data that a newer version changed in another way (STORE-8)', () => {
    const database = openDatabase(join(folder, 'later.db'))
    database.exec("INSERT INTO schema_migration VALUES ('9999-later', '9999-later', 0)")
    database.close()
    assert.throws(
      () => open('later.db'),
      /^Error: Cannot open FHIR data in .*later\.db: a newer version of Sallyport changed it \(it has migration 9999-later\)$/,
    )
  })
})

describe('data that cannot be opened', () => {
  it('are reported with the reason', () => {
    writeFileSync(
      join(folder, 'junk.db'),
      'this is no database, and long enough to be read as one '.repeat(50),
    )
    assert.throws(() => open('junk.db'), /Cannot open FHIR data in .*junk\.db: file is not a database/)
    assert.throws(() => open('junk.db/fhir.db'), /Cannot open FHIR data in .*junk\.db\/fhir\.db: /)
  })
})

describe('load', () => {
  it('writes new and changed resources, and reports refused ones with the reason', () => {
    const repository = openRepository({ file: ':memory:', baseUrl: BASE })
    const resources = [
      patient('1'),
      { resourceType: 'Patient', gender: 'male' },
      { resourceType: 'Nothing', id: 'x' },
      patient('2', { gender: 'x' }),
      patient('not an id'),
      null,
      'text',
    ]
    const report = repository.load(resources)
    assert.deepEqual([report.created, report.updated, report.unchanged], [2, 0, 0])
    assert.deepEqual(
      report.refused.map(it => [it.index, it.type, it.id, it.faults[0]?.path]),
      [
        [2, undefined, 'x', 'resourceType'],
        [3, 'Patient', '2', 'Patient.gender'],
        [4, 'Patient', 'not an id', 'Patient.id'],
        [5, undefined, undefined, 'resourceType'],
        [6, undefined, undefined, 'resourceType'],
      ],
    )
    const again = repository.load([patient('1'), patient('2')])
    assert.deepEqual([again.created, again.updated, again.unchanged], [1, 0, 1])
    const changed = repository.load([patient('1', { gender: 'other' })])
    assert.equal(changed.updated, 1)
    assert.equal(repository.find('Patient', '1')?.version, 2)
    repository.close()
  })

  it('writes everything, or nothing if the source fails', () => {
    const repository = openRepository({ file: ':memory:', baseUrl: BASE })
    function* broken() {
      yield patient('1')
      throw new Error('the file ended')
    }
    assert.throws(() => repository.load(broken()), /the file ended/)
    assert.equal(repository.count(), 0)
    assert.equal(repository.load([patient('1')]).created, 1)
    repository.close()
  })

  it('runs beside a server, which sees the data at once', async () => {
    const fhir = await startFhir({ dataFile: join(folder, 'shared.db') })
    assert.equal((await fhir('GET Patient')).body.total, 0)
    const beside = open('shared.db')
    beside.load([patient('1')])
    beside.close()
    assert.equal((await fhir('GET Patient')).body.total, 1)
    await fhir.close()
  })
})
