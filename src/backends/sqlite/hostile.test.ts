import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { isDatabaseUnavailable } from '../../store/index.ts'
import { type Fhir, patient, readIssue, startFhir } from './testing/fhir.ts'

let fhir: Fhir
before(async () => {
  fhir = await startFhir()
  await fhir('PUT Patient/1', patient('1'))
})
after(() => fhir.close())

const times = (count: number, text: string) =>
  Array.from({ length: count }, (_, at) => text.replaceAll('#', String(at)))
const nested = (levels: number) =>
  `${'{"url":"http://x","extension":['.repeat(levels)}{"url":"http://y","valueCode":"x"}${']}'.repeat(levels)}`
const deepPatient = (levels: number) => `{"resourceType":"Patient","extension":[${nested(levels)}]}`

describe('a request over a limit', () => {
  const FORMS: Readonly<Record<string, string>> = {
    ids: `_id=${times(40_000, 'a#')}`,
    values: `name=${times(3000, 'a#')}`,
    parameters: times(3000, 'name=a#').join('&'),
    'parts of names': `name:contains=${times(50, 'a#')}`,
    'sort keys': `_sort=${times(100, 'name')}`,
    includes: times(3000, '_include=Patient:link').join('&'),
    characters: `name=${'a'.repeat(70_000)}`,
    'encoded commas': `_id=${times(1_100, 'a').join('%2C')}`,
  }
  for (const [name, form] of Object.entries(FORMS))
    it(`gets 400 with the reason: ${name} (LIMIT-2)`, async () => {
      const type = { 'content-type': 'application/x-www-form-urlencoded' }
      assert.match(readIssue(await fhir('POST Patient/_search', form, type)), /^400 too-costly: Cannot .*\d/)
    })

  it('gets 400 with the reason: chains through every type, and a search of every type', async () => {
    for (const [address, query] of [
      ['Provenance/_search', times(20, 'target.derived-from.based-on._id=#').join('&')],
      ['Provenance/_search', `target.focus.focus._id=${times(900, 'a#')}`],
      ['_search', `_has:Provenance:target:target._id=${times(900, 'a#')}`],
    ]) {
      const type = { 'content-type': 'application/x-www-form-urlencoded' }
      assert.match(
        readIssue(await fhir(`POST ${address}`, query, type)),
        /^400 too-costly: .* more than 2500 steps/,
      )
    }
  })

  it('gets 400 with the reason: includes of everything, by every type', async () => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    assert.match(
      readIssue(await fhir('POST _search', times(900, '_revinclude=*').join('&'), type)),
      /^400 too-costly: Cannot include by more than 1000 /,
    )
  })

  it('gets 400 with the reason: a chain over every type, a condition', async () => {
    assert.match(readIssue(await fhir('GET Provenance?target.subject.name=x')), /^400 too-costly: /)
    const header = { 'if-none-exist': `_id=${times(1000, 'a#')}` }
    assert.match(
      readIssue(await fhir('POST Patient', { resourceType: 'Patient' }, header)),
      /^400 too-costly: /,
    )
  })

  it('gets 4xx if it is nested too deeply', async () => {
    assert.equal((await fhir('POST Patient', deepPatient(200))).status, 422)
    assert.match(
      readIssue(await fhir('POST Patient', deepPatient(20_000))),
      /^400 too-costly: Cannot read body: its JSON is nested more than 500 levels deep$/,
    )
    assert.match(
      readIssue(await fhir('POST Patient', `[${'1,'.repeat(200_000)}1]`)),
      /^400 too-costly: Cannot read body: its JSON has more than 200000 values$/,
    )
    assert.equal((await fhir('POST Patient', '['.repeat(500_000))).status, 400)
    for (const type of ['batch', 'transaction']) {
      const entry = `{"request":{"method":"POST","url":"Patient"},"resource":${deepPatient(20_000)}}`
      const reply = await fhir('POST ', `{"resourceType":"Bundle","type":"${type}","entry":[${entry}]}`)
      assert.equal(reply.status, 400, type)
    }
    const patch = `[{"op":"add","path":"/extension","value":[${nested(20_000)}]}]`
    const reply = await fhir('PATCH Patient/1', patch, { 'content-type': 'application/json-patch+json' })
    assert.match(String(reply.status), /^4/)
    assert.equal((await fhir('GET Patient/1')).headers.etag, 'W/"1"')
  })
})

describe('a long text', () => {
  it('is found by its beginning, and stored completely', async () => {
    const family = 'é'.repeat(1_000_000)
    const made = await fhir('POST Patient', { resourceType: 'Patient', name: [{ family }] })
    assert.deepEqual((await fhir(`GET Patient/${made.body.id}`)).body.name, [{ family }])
    const found = async (query: string) => (await fhir(`GET Patient?${query}`)).body.total
    assert.equal(await found(`name=${'e'.repeat(900)}`), 1)
    assert.match(
      readIssue(await fhir(`GET Patient?name=${'e'.repeat(1_100)}`)),
      /^400 too-costly: .*1000 characters/,
    )
    assert.equal(await found(`family:exact=${encodeURIComponent('é'.repeat(1_100))}`), 0)
    assert.equal(await found(`name=${'e'.repeat(900)}x`), 0)
  })

  it('is refused as a narrative if it is too long', async () => {
    const div = `<div xmlns="http://www.w3.org/1999/xhtml">${'<p>a</p>'.repeat(150_000)}</div>`
    const reply = await fhir('POST Patient', { resourceType: 'Patient', text: { status: 'generated', div } })
    assert.equal(readIssue(reply), '422 value: Expected a narrative of at most 1048576 characters')
  })
})

describe('unusual text', () => {
  it('is stored unchanged, or refused', async () => {
    for (const family of ['\u0000', '\ud800', '\u{1f600}', "'; DROP TABLE resource; --", '\u2028', '"\\']) {
      const made = await fhir('POST Patient', { resourceType: 'Patient', name: [{ family }] })
      assert(made.status === 201 || made.status === 422, `${JSON.stringify(family)} ${made.status}`)
      if (made.status === 201)
        assert.deepEqual(
          (await fhir(`GET Patient/${made.body.id}`)).body.name,
          [{ family }],
          JSON.stringify(family),
        )
    }
  })

  it('is unknown as the name of a parameter or member, never inherited', async () => {
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty'])
      assert.equal((await fhir(`GET Patient?${name}=1`)).status, 400, name)
    const body = '{"resourceType":"Patient","__proto__":{"active":true},"constructor":1}'
    assert.equal((await fhir('POST Patient', body)).status, 422)
  })

  it('is ignored or refused in headers', async () => {
    for (const headers of [{ 'if-match': '' }, { 'if-match': 'nonsense' }, { 'if-match': 'W/"1' }])
      assert.equal((await fhir('PUT Patient/1', patient('1'), headers)).status, 412, JSON.stringify(headers))
    assert.equal((await fhir('GET Patient/1', undefined, { prefer: 'return=everything, x' })).status, 200)
  })
})

describe('isDatabaseUnavailable', () => {
  it('distinguishes a busy file from an error in SQL', () => {
    const folder = mkdtempSync(join(tmpdir(), 'fhir-busy-'))
    const [one, two] = [0, 1].map(() => new DatabaseSync(join(folder, 'x.db'), { timeout: 0 }))
    one?.exec('CREATE TABLE t (x); BEGIN IMMEDIATE')
    assert.throws(() => two?.exec('BEGIN IMMEDIATE'), isDatabaseUnavailable)
    assert.throws(
      () => two?.exec('nonsense'),
      error => !isDatabaseUnavailable(error),
    )
    assert(!isDatabaseUnavailable(new Error('x')) && !isDatabaseUnavailable(undefined))
    one?.close()
    two?.close()
    rmSync(folder, { recursive: true })
  })
})
