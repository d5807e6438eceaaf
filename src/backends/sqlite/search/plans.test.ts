import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { type Resource, Work } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import { openRepository } from '../index.ts'
import { BASE, createAuthenticator, type Fhir, observation, patient, startFhir } from '../testing/fhir.ts'
import { CALLERS, choosePatient, GROWING, READS } from '../testing/query-shapes.ts'
import { findConditionMatch } from './search.ts'

// More than one step of a search reads: in a single step every walk looks unbounded.
const PATIENTS = 2_100
const TEAMS = 420
const OBSERVATIONS = 2_100
/** More of one patient. */
const OWN_OBSERVATIONS = 600

const to = (reference: string) => ({ reference })

const choosePanel = (at: number) => (at % 300 === 0 ? 'few' : at % 3 === 1 ? 'others' : 'many')

/** Patient 0 and a few others are of `few`, most others of `many`, and the male ones of `others`. */
function* listResources(): Generator<Resource> {
  for (const id of ['few', 'many']) yield { resourceType: 'Organization', id, name: id }
  for (let at = 0; at < PATIENTS; at++) {
    const panel = choosePanel(at)
    yield patient(`p${at}`, {
      identifier: [{ value: `${at}` }],
      gender: panel === 'others' ? 'male' : 'female',
      name: [{ family: at % 2 === 0 ? 'Smithson' : `Jones${at}` }],
      managingOrganization: to(`Organization/${panel}`),
    })
    if (at >= TEAMS) continue
    yield {
      resourceType: 'CareTeam',
      id: `t${at}`,
      status: 'active',
      subject: to(`Patient/p${at}`),
      participant: [{ member: to(`Practitioner/${panel}`) }],
    }
  }
  const category = [{ coding: [{ code: 'vital-signs' }] }]
  for (let at = 0; at < OBSERVATIONS; at++) {
    const effectiveDateTime = `20${10 + (at % 15)}-01-01`
    yield observation(`o${at}`, `p${at % PATIENTS}`, { category, effectiveDateTime })
  }
  for (let at = 0; at < OWN_OBSERVATIONS; at++) yield observation(`own${at}`, 'p0', { category })
}

/** The first refers to half of all patients. */
const REFERRED = [
  'Organization?_id=many&_revinclude=Patient:organization',
  'Patient?_id=PATIENT&_revinclude=Observation:patient&_include=Patient:organization',
]

const TRANSACTION = {
  resourceType: 'Bundle',
  type: 'transaction',
  entry: [
    {
      resource: { resourceType: 'CareTeam', status: 'active', subject: to('Patient/PATIENT') },
      request: { method: 'POST', url: 'CareTeam', ifNoneExist: 'patient=PATIENT' },
    },
    {
      resource: observation('', 'PATIENT', { id: undefined }),
      request: { method: 'PUT', url: 'Observation?patient=PATIENT&date=2001' },
    },
  ],
}

describe('the query plans of all access filters and requests', () => {
  const statements = new Map<string, string>()
  const { prepare } = DatabaseSync.prototype
  const folder = mkdtempSync(join(tmpdir(), 'plans-'))
  const dataFile = join(folder, 'fhir.db')
  let fhir: Fhir
  let request = ''
  let database: DatabaseSync

  before(async () => {
    const repository = openRepository({ file: dataFile, baseUrl: BASE })
    assert.deepEqual(repository.load(listResources()).refused, [])
    repository.close()
    database = new DatabaseSync(dataFile)
    fhir = await startFhir({ dataFile, guard: createAuthenticator(CALLERS) })
    DatabaseSync.prototype.prepare = function (text, options) {
      if (!statements.has(text)) statements.set(text, request)
      return prepare.call(this, text, options)
    }
    for (const caller of Object.keys(CALLERS)) await sendAll(caller)
  })

  after(async () => {
    DatabaseSync.prototype.prepare = prepare
    await fhir.close()
    database.close()
    rmSync(folder, { recursive: true })
  })

  async function sendAll(caller: string): Promise<void> {
    const ofCaller = (text: string) => text.replaceAll('PATIENT', choosePatient(caller))
    for (const path of [...READS, ...GROWING, ...REFERRED]) {
      request = `${caller}: ${path}`
      const { status, text } = await fhir.as(caller)(`GET ${ofCaller(path)}`)
      assert.equal(status, 200, `${request} ${text}`)
    }
    request = `${caller}: a transaction`
    const { status, text } = await fhir.as(caller)('POST ', ofCaller(JSON.stringify(TRANSACTION)))
    assert.ok(status === 200 || status === 403, `${request} ${text}`)
  }

  function explain(text: string): readonly string[] {
    const rows = prepare.call(database, `EXPLAIN QUERY PLAN ${text}`).all()
    // The size of `name` does not depend on the data.
    return rows.map(({ detail }) => String(detail)).filter(detail => !/^\w+ name /.test(detail))
  }

  function explainAll(): ReadonlyMap<string, readonly string[]> {
    const texts = [...statements.keys()].filter(text => /^(SELECT|UPDATE|DELETE)/.test(text))
    return new Map(texts.map(text => [text, explain(text)]))
  }

  it('read a type as a whole only to find the end of a step, to count up to a limit, or where every row is on the page', () => {
    const plans = explainAll()
    assert.ok(plans.size > 100, `${plans.size} statements`)
    for (const [text, plan] of plans) {
      if (!plan.some(line => isUnbounded(line, plan))) continue
      assert.ok(
        BOUNDED.some(it => it(text)),
        describeUse(text, plan),
      )
      assert.doesNotMatch(plan.join('\n'), /TEMP B-TREE FOR ORDER BY/, describeUse(text, plan))
    }
  })

  it('read a search by a name in the order of the family names, and stop when the page is full', () => {
    // Callers with the same kind of access share a statement, and so do both names.
    const ordered = (caller: string) =>
      [...statements].filter(
        ([text, of]) =>
          /ORDER BY k0, rid LIMIT 6$/.test(text) && /^(.*): Patient\?name=smith/.exec(of)?.[1] === caller,
      )
    for (const caller of ['system', 'many by organization', 'many by care team', 'many by all']) {
      assert.equal(ordered(caller).length, 1, caller)
      for (const [text] of ordered(caller))
        assert.doesNotMatch(explain(text).join('\n'), /TEMP B-TREE FOR ORDER BY/, text)
    }
  })

  it('have the number of a LIMIT in their text: SQLite plans a statement with a value there anew each time', () => {
    for (const [text, of] of statements) assert.doesNotMatch(text, /LIMIT \?/, of)
  })

  /** The statements that stop after a number of rows, whatever the data. */
  const BOUNDED: readonly ((text: string) => boolean)[] = [
    text => /LIMIT 1 OFFSET \?$/.test(text),
    text => /^SELECT count\(\*\) FROM \(SELECT 1 .* LIMIT \d+\)$/s.test(text) && !UNINDEXED.test(text),
    text => / LIMIT \d+$/.test(text) && !/(?<!NOT )EXISTS/.test(text),
    // A history reads versions, the last ones first.
    text => /FROM version v .*ORDER BY v\.seq DESC LIMIT \d+$/s.test(text),
  ]

  /** Conditions by which a statement may leave out any number of rows before it finds one. */
  const UNINDEXED = /EXISTS|DISTINCT|instr\(|\.(system|text|value|exact|unit)\b/

  /** Whether a line of a plan reads a large table, or a type or parameter, as a whole. */
  function isUnbounded(line: string, plan: readonly string[]): boolean {
    if (line === 'SCAN r' && plan.includes('CO-ROUTINE r')) return false
    return (
      /^SCAN (?!json|CONSTANT|[jqf]\b|\()/.test(line) ||
      (/\((tid|nid)=\?\)/.test(line) && !/ EXISTS /.test(line))
    )
  }

  it('find the versions of all steps of a history', async () => {
    const ids: string[] = []
    let next: string | undefined = 'Patient/_history?_count=900&_since=2001-01-01T00:00:00Z'
    while (next !== undefined) {
      const { body } = await fhir.as('many by organization')(`GET ${next}`)
      ids.push(...(body.entry?.map(({ resource }) => String(resource?.id)) ?? []))
      next = body.link?.find(({ relation }) => relation === 'next')?.url.slice(BASE.length + 1)
    }
    const patients = Array.from({ length: PATIENTS }, (_, at) => at)
    const expected = patients.filter(at => choosePanel(at) === 'many').map(at => `p${at}`)
    assert.deepEqual(ids, expected.toReversed())
  })

  it('limit the rows that the search of a conditional write reads (WRITE-12)', () => {
    const repository = openRepository({ file: dataFile, baseUrl: BASE })
    const request = { access: fullAccess, work: new Work() }
    const find = (rows: number) =>
      findConditionMatch(repository, request, 'Observation', [['code:missing', 'true']], rows)
    assert.match(JSON.stringify(find(2_000)), /condition-too-wide/)
    assert.deepEqual(find(20_000), { match: undefined })
    repository.close()
  })

  it('do not depend on statistics', () => {
    const before = explainAll()
    database.exec('ANALYZE')
    const reopened = new DatabaseSync(dataFile)
    database.close()
    database = reopened
    for (const [text, plan] of explainAll())
      assert.deepEqual(plan.toSorted(), before.get(text)?.toSorted(), describeUse(text, plan))
  })

  function describeUse(text: string, plan: readonly string[]): string {
    return `${statements.get(text)}\n${text}\n${plan.join('\n')}`
  }
})
