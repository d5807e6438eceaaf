import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { condition, NOT_WITHIN, type Reply, readIssue, readNextLink } from '../../sqlite/testing/fhir.ts'
import { useHostileGateway } from '../testing/hostile-gateway.ts'
import { json } from '../testing/hostile-upstream.ts'

const { ann, upstream } = await useHostileGateway({ versionAccess: 'version' })

/** Versions of one resource, one page of the upstream for each word: a letter stands for the patient of a version. */
function holds(pages: readonly string[]): void {
  const patients: Readonly<Record<string, string>> = { a: 'ann', b: 'bob' }
  const link = (page: number) => [
    { relation: 'next', url: `${upstream.url}/Condition/c/_history?page=${page}` },
  ]
  upstream.answer((request, response) => {
    const at = Number(/page=(\d+)/.exec(request.url ?? '')?.[1] ?? 0)
    json(response, {
      resourceType: 'Bundle',
      type: 'history',
      ...(at + 1 < pages.length && { link: link(at + 1) }),
      entry: [...(pages[at] ?? '')].map((letter, place) => ({
        resource: condition('c', patients[letter] ?? '', { meta: { versionId: `${letter}${at}${place}` } }),
      })),
    })
  })
}

const TOO_COSTLY = '400 too-costly: Cannot check more than 5000 resources for this request: request less data'
const versions = ({ body }: Reply) => body.entry?.map(it => it.resource?.meta?.versionId) ?? []
const asksFor = async (line: string) => {
  const from = upstream.seen.length
  const reply = await ann(line)
  return { reply, asked: upstream.seen.slice(from).map(it => it.line.replace(/.*\/up/, '')) }
}

describe('the history of a resource', () => {
  it('of another patient is refused like an absent one, however many versions and pages it has', async () => {
    for (const pages of [['b'], ['b', 'b'], ['bb', 'bb', 'bb'], ['']]) {
      holds(pages)
      for (const count of ['', '?_count=1', '?_count=0'])
        assert.equal(
          readIssue(await ann(`GET Condition/c/_history${count}`)),
          NOT_WITHIN,
          `${pages} ${count}`,
        )
    }
  })

  it('has full pages of versions within the grant', async () => {
    holds(['ba', 'bb', 'aab', 'b'])
    const first = await ann('GET Condition/c/_history?_count=2')
    assert.deepEqual([versions(first), first.body.total], [['a01', 'a20'], undefined])
    const second = await ann(`GET ${readNextLink(first)}`)
    assert.deepEqual([versions(second), readNextLink(second)], [['a21'], undefined])
    const whole = await ann('GET Condition/c/_history')
    assert.deepEqual(
      [versions(whole), whole.body.total, readNextLink(whole)],
      [['a01', 'a20', 'a21'], 3, undefined],
    )
    const none = await ann('GET Condition/c/_history?_count=0')
    assert.deepEqual([none.status, versions(none), readNextLink(none)], [200, [], undefined])
  })

  it('is requested in pages of 100, at most 50 of them', async () => {
    holds(['b', 'b'])
    const { asked } = await asksFor('GET Condition/c/_history?_count=1&_since=2020')
    assert.deepEqual(asked, ['/Condition/c/_history?_since=2020&_count=100', '/Condition/c/_history?page=1'])
    holds(Array.from({ length: 99 }, () => 'b'))
    const endless = await asksFor('GET Condition/c/_history')
    assert.deepEqual([readIssue(endless.reply), endless.asked.length], [NOT_WITHIN, 50])
    holds(['a', ...Array.from({ length: 99 }, () => 'b')])
    const begun = await asksFor('GET Condition/c/_history')
    assert.deepEqual([readIssue(begun.reply), begun.asked.length], [TOO_COSTLY, 50])
  })
})

describe('the history of a type', () => {
  it('has full pages of versions within the grant, or fails', async () => {
    holds(['ba', 'bb', 'aab', 'b'])
    const first = await ann('GET Condition/_history?_count=2')
    assert.deepEqual([versions(first), first.body.total], [['a01', 'a20'], undefined])
    const second = await ann(`GET ${readNextLink(first)}`)
    assert.deepEqual([versions(second), readNextLink(second)], [['a21'], undefined])
    holds(['b', 'b'])
    const none = await ann('GET Condition/_history?_count=1')
    assert.deepEqual([versions(none), none.body.total, readNextLink(none)], [[], 0, undefined])
    holds([...Array.from({ length: 50 }, () => 'b'), 'a'])
    assert.equal(readIssue(await ann('GET Condition/_history?_count=1')), TOO_COSTLY)
    holds(['a', ...Array.from({ length: 50 }, () => 'b')])
    assert.equal(readIssue(await ann('GET Condition/_history?_count=2')), TOO_COSTLY)
    const full = await ann('GET Condition/_history?_count=1')
    assert.deepEqual([versions(full), readNextLink(full) !== undefined], [['a00'], true])
  })
})
