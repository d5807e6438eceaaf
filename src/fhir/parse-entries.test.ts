import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fail } from './failure.ts'
import { BATCH_ENTRIES, TRANSACTION_ENTRIES } from './limits.ts'
import { parseEntries } from './parse-entries.ts'

const base = 'http://localhost:8080/fhir'
const bundle = (...entry: unknown[]) => ({ resourceType: 'Bundle', type: 'batch', entry })
const get = { request: { method: 'GET', url: 'Patient/1' } }

describe('parseEntries', () => {
  it('refuses what is no batch or transaction, and says which entry is none', () => {
    const bad = (text: string, entry?: number) =>
      fail({
        problem: 'bad-bundle',
        text,
        ...(entry !== undefined && { entry }),
      })
    assert.deepEqual(
      parseEntries({ resourceType: 'Patient' }, base),
      bad('Cannot read body: expected a Bundle'),
    )
    assert.deepEqual(
      parseEntries(bundle(get, { request: { method: 'GET' } }), base),
      bad('Cannot process entry: its request has no method or url', 1),
    )
    assert.deepEqual(parseEntries(bundle({}), base), bad('Cannot process entry: it has no request', 0))
  })

  it('takes two thousand entries of a batch, and one thousand of a transaction', () => {
    assert.deepEqual([BATCH_ENTRIES, TRANSACTION_ENTRIES], [2_000, 1_000])
    for (const [type, count] of [
      ['batch', BATCH_ENTRIES],
      ['transaction', TRANSACTION_ENTRIES],
    ] as const) {
      const most = { ...bundle(...Array.from({ length: count }, () => get)), type }
      assert.ok('entries' in parseEntries(most, base))
      const more = parseEntries({ ...most, entry: [...most.entry, get] }, base)
      assert.ok('problem' in more)
      assert.equal(more.problem, 'too-costly')
      assert.match(more.text, new RegExp(`a ${type} may have up to ${count} entries`))
    }
  })

  it('reads a JSON Patch from a Binary, and nothing else as one', () => {
    const steps = [{ op: 'remove', path: '/code' }]
    const data = Buffer.from(JSON.stringify(steps)).toString('base64')
    const patch = { resourceType: 'Binary', contentType: 'application/json-patch+json', data }
    const bodyOf = (resource: unknown, url = 'Condition/1') => {
      const parsed = parseEntries(bundle({ request: { method: 'PATCH', url }, resource }), base)
      assert.ok('entries' in parsed)
      return parsed.entries[0]?.body
    }
    assert.deepEqual(bodyOf(patch), steps)
    assert.deepEqual(bodyOf(patch, 'Condition?code=1'), steps)
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
      assert.equal(bodyOf(resource), undefined, JSON.stringify(resource))
  })
})
