import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import { BATCH_ENTRIES, BUNDLE_PATCH_CHARACTERS, TRANSACTION_ENTRIES } from './limits.ts'
import { failAt, parseEntry, parseEntries as parseInSteps } from './parse-entries.ts'
import { describeFailed, failFor, isExcess } from './reasons/reasons.ts'
import { runAtOnce, Work } from './work.ts'

const base = 'http://localhost:8080/fhir'
const bundle = (...entry: unknown[]) => ({ resourceType: 'Bundle', type: 'batch', entry })
const get = { request: { method: 'GET', url: 'Patient/1' } }

const parseEntries = (body: unknown, baseUrl: string) => runAtOnce(parseInSteps(body, baseUrl, new Work()))

describe('parseEntries', () => {
  it('refuses other Bundles and names the invalid entry', () => {
    assert.deepEqual(parseEntries({ resourceType: 'Patient' }, base), failFor('bundle-missing'))
    assert.deepEqual(
      parseEntries(bundle(get, { request: { method: 'GET' } }), base),
      failAt(1, failFor('entry-request-incomplete')),
    )
    assert.deepEqual(parseEntries(bundle({}), base), failAt(0, failFor('entry-without-request')))
  })

  it('accepts two thousand entries of a batch and one thousand of a transaction', () => {
    assert.deepEqual([BATCH_ENTRIES, TRANSACTION_ENTRIES], [2_000, 1_000])
    for (const [type, count] of [
      ['batch', BATCH_ENTRIES],
      ['transaction', TRANSACTION_ENTRIES],
    ] as const) {
      const most = { ...bundle(...Array.from({ length: count }, () => get)), type }
      assert.ok('entries' in parseEntries(most, base))
      const more = parseEntries({ ...most, entry: [...most.entry, get] }, base)
      assert.ok(isFailure(more))
      assert(isExcess(more))
      assert.match(describeFailed(more), new RegExp(`a ${type} may have up to ${count} entries`))
    }
  })

  it('counts the parameters of an entry before it parses them (LIMIT-10)', () => {
    const search = { request: { method: 'GET', url: `Condition?${'_id=x%2Cy&'.repeat(400)}_id=x` } }
    const parsed = runAtOnce(parseInSteps(bundle(search, get, search, get), base, new Work(30_000)))
    assert.ok('entries' in parsed)
    const kinds = parsed.entries.map(({ interaction }) => interaction.kind)
    assert.deepEqual(kinds, ['search-type', 'read', 'misunderstood', 'misunderstood'])
    assert.partialDeepStrictEqual(parsed.entries[2]?.interaction, { reason: 'work-of-parameters' })
  })

  it('limits the characters of all JSON Patches', () => {
    const patchOf = (length: number) => ({
      request: { method: 'PATCH', url: 'Condition/1' },
      resource: {
        resourceType: 'Binary',
        contentType: 'application/json-patch+json',
        data: 'A'.repeat(length),
      },
    })
    const entries = [get, patchOf(1), patchOf(BUNDLE_PATCH_CHARACTERS - 1)]
    const findProblem = (...entry: unknown[]) => {
      const parsed = parseEntries(bundle(...entry), base)
      return isFailure(parsed) ? parsed.reason : undefined
    }
    assert.equal(findProblem(...entries), undefined)
    assert.equal(findProblem(...entries, null), 'entry-without-request')
    assert.equal(findProblem(...entries, patchOf(1)), 'bundle-patches-too-long')
  })

  it('reads a JSON Patch only from a Binary, and a FHIRPath Patch from Parameters', () => {
    const steps = [{ op: 'remove', path: '/code' }]
    const data = Buffer.from(JSON.stringify(steps)).toString('base64')
    const patch = { resourceType: 'Binary', contentType: 'application/json-patch+json', data }
    const parseBody = (resource: unknown, url = 'Condition/1') => {
      const parsed = parseEntries(bundle({ request: { method: 'PATCH', url }, resource }), base)
      assert.ok('entries' in parsed)
      return parsed.entries[0]?.body
    }
    assert.deepEqual(parseBody(patch), steps)
    assert.deepEqual(parseBody(patch, 'Condition?code=1'), steps)
    const fhirPath = { resourceType: 'Parameters', parameter: [] }
    assert.equal(parseBody(fhirPath), fhirPath)
    for (const resource of [
      undefined,
      null,
      { ...patch, resourceType: 'Parameters' },
      { ...patch, contentType: 'application/json' },
      { ...patch, data: 5 },
      { ...patch, data: [data] },
      { ...patch, data: 'bm90IEpTT04=' },
      steps,
    ])
      assert.equal(parseBody(resource), undefined, JSON.stringify(resource))
  })
})

describe('parseEntry', () => {
  it('accepts a URL relative to the base or absolute below it (BUNDLE-5)', () => {
    const read = { kind: 'read', type: 'Patient', id: '1', params: [] }
    for (const url of ['Patient/1', '/Patient/1', `${base}/Patient/1`])
      assert.deepEqual(parseEntry({ method: 'GET', url }, base), read)
  })

  it('reads queries and ifNoneExist', () => {
    assert.deepEqual(parseEntry({ method: 'DELETE', url: 'Condition?code=1' }, base), {
      kind: 'delete-conditional',
      type: 'Condition',
      params: [['code', '1']],
    })
    assert.deepEqual(parseEntry({ method: 'POST', url: 'Patient', ifNoneExist: 'identifier=1' }, base), {
      kind: 'create',
      type: 'Patient',
      ifNoneExist: [['identifier', '1']],
    })
    for (const url of ['?_type=Patient', '/?_type=Patient', `${base}?_type=Patient`])
      assert.deepEqual(parseEntry({ method: 'GET', url }, base), {
        kind: 'search-system',
        params: [['_type', 'Patient']],
      })
  })

  for (const [method, url] of [
    ['GET', 'http://evil.example/fhir/Patient/1'],
    ['GET', `${base}x/Patient/1`],
    ['GET', '//Patient/1'],
    ['GET', 'Patient/../Condition/1'],
    ['GET', 'urn:uuid:0f0e0d0c-0000-4000-8000-000000000000'],
    ['POST', ''],
    ['POST', '/'],
    ['POST', base],
    ['POST', 'Patient/_search'],
    ['OPTIONS', 'Patient'],
    ['GET', 'Patient?name=\ud800'],
    ['GET', 'Patient?\udc00=x'],
  ] as const)
    it(`refuses ${method} ${url.toWellFormed()}`, () => {
      assert.equal(parseEntry({ method, url }, base).kind, 'misunderstood')
    })
})
