import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAccessCache } from '../../../fhir-api/index.ts'
import { condition, patientAccess } from '../../sqlite/testing/fhir.ts'
import type { KeptPage } from '../paging.ts'
import { keepPage, openMemory, recallPage } from './known-pages.ts'
import { ParsedResource } from './pages.ts'

const resource = condition('c1', 'ann', { meta: { lastUpdated: '2026-01-02T00:00:00Z' } })
const entry = [{ resource }]
const page = {
  matches: [new ParsedResource(resource, JSON.stringify(resource))],
  includes: [],
  strays: 0,
  omitted: 0,
  findNewest: () => '',
}

/** Keeps the page of the first text, and finds it for the second. */
function recall(first: string, second: string) {
  const kept = new Map<string, KeptPage>()
  keepPage(first, JSON.parse(first), page, (entries, it) => kept.set(entries, it))
  return recallPage(second, entries => kept.get(entries))
}

describe('a repeated page of a search', () => {
  const format = (head: object, tail: object = {}) =>
    JSON.stringify({ resourceType: 'Bundle', type: 'searchset', ...head, entry, ...tail })

  it('is recognized by its entries, and has its own id, time, total and links', () => {
    const first = format({ id: 'a', meta: { lastUpdated: '2026-01-01T00:00:00Z' }, total: 1 }, { link: [] })
    for (const head of [{}, { id: 'b' }, { total: 2, meta: { tag: [{ code: 'x' }] } }]) {
      const second = format(head, { link: [] })
      const known = recall(first, second)
      assert.deepEqual({ ...known?.bundle, entry }, JSON.parse(second))
      const [match] = known?.page.matches ?? []
      assert.deepEqual([match?.parse(), match?.order], [resource, Date.UTC(2026, 0, 2)])
    }
  })

  it('is not recognized if an entry or the text after the entries differs', () => {
    const first = format({ id: 'a' }, { link: [] })
    assert.ok(recall(first, format({ id: 'b' }, { link: [] })))
    assert.equal(recall(first, format({ id: 'b' }, { link: [{ relation: 'next', url: 'x' }] })), undefined)
    assert.equal(recall(first, first.replace('c1', 'c2')), undefined)
    assert.equal(recall(first, format({ meta: { tag: [{ code: 'entry' }] } }, { link: [] })), undefined)
  })

  it('is not recognized if the text before the entries is not that of a Bundle', () => {
    const first = format({})
    const entries = first.slice(first.indexOf('"entry"'))
    for (const head of [
      '{"resourceType":"Bundle",',
      '{"resourceType":"Patient",',
      '{"resourceType":"Bundle","contained":[{',
      '{"resourceType":"Bundle","id":"\\',
      '{"resourceType":"Bundle"',
      '[{"resourceType":"Bundle",',
      '',
    ])
      assert.equal(recall(first, head + entries) !== undefined, head === '{"resourceType":"Bundle",', head)
  })

  it('is not recognized without entries', () => {
    const text = '{"resourceType":"Bundle","total":0}'
    assert.equal(recall(text, text), undefined)
  })

  it('is recognized with the same access, check and URL only, and never by a check without a key', () => {
    const context = { checkedPages: createAccessCache<KeptPage>() }
    const [text, access, path] = [format({}), patientAccess('ann'), '/Condition']
    const memory = openMemory(context, { access }, { path }, 'key')
    memory?.keep(text, JSON.parse(text), page)
    assert.ok(memory?.recall(text))
    for (const other of [
      openMemory(context, { access: patientAccess('ann') }, { path }, 'key'),
      openMemory(context, { access }, { path: '/Condition?_page=2' }, 'key'),
      openMemory(context, { access }, { path }, 'other key'),
    ])
      assert.equal(other?.recall(text), undefined)
    assert.equal(openMemory(context, { access }, { path }, undefined), undefined)
  })
})
