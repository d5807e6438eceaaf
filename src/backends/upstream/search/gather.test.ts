import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fail, limits } from '../../../fhir/index.ts'
import { isFailure } from '../../../fhir-api/index.ts'
import { gather } from './gather.ts'
import type { PageCursor } from './page-links.ts'

/** Pages of permissions, of which capitals may be seen; the link of each is its number, and of the first nothing. */
function pagesOf(...pages: readonly string[]) {
  const asked: string[] = []
  const fetch = async (link: string) => {
    asked.push(link)
    const at = Number(link)
    const items = [...(pages[at] ?? '')].filter(permission => permission === permission.toUpperCase())
    return { items, next: at + 1 < pages.length ? { link: String(at + 1) } : undefined }
  }
  const page = async (count: number, from?: PageCursor) => {
    const gathered = await gather<string>(from, count, fetch)
    assert(!isFailure(gathered))
    const { items, links, isWhole, isEndless } = gathered
    return { items: items.join(''), next: links.get('next'), isWhole, isEndless }
  }
  return { asked, page }
}

describe('a page that is gathered', () => {
  it('holds as many as were asked for, and links on only to what can be seen', async () => {
    const { page } = pagesOf('aBc', 'd', 'EFg', 'h')
    const second = { link: '2', skip: 1 }
    assert.deepEqual(await page(2), { items: 'BE', next: second, isWhole: false, isEndless: false })
    assert.deepEqual(await page(2, second), { items: 'F', next: undefined, isWhole: false, isEndless: false })
    assert.deepEqual(await page(3), { items: 'BEF', next: undefined, isWhole: true, isEndless: false })
    assert.deepEqual(await page(1, { link: '2' }), {
      ...{ items: 'E', next: second, isWhole: false, isEndless: false },
    })
  })

  it('goes on within one page of the upstream, from its begin too', async () => {
    const { page } = pagesOf('ABCDE')
    const first = await page(2)
    assert.deepEqual([first.items, first.next], ['AB', { link: '', skip: 2 }])
    const next = await page(2, first.next)
    assert.deepEqual([next.items, next.next, next.isWhole], ['CD', { link: '', skip: 4 }, false])
    assert.deepEqual((await page(2, next.next)).items, 'E')
    assert.deepEqual((await page(0)).next, { link: '', skip: 0 })
  })

  it('is looked for in so many pages and no more', async () => {
    const { asked, page } = pagesOf(...Array.from({ length: 51 }, () => 'x'))
    assert.deepEqual(await page(2), { items: '', next: { link: '50' }, isWhole: false, isEndless: true })
    assert.deepEqual([asked.length, asked[0], asked.at(-1)], [50, '', '49'])
    const enough = pagesOf(...Array.from({ length: 50 }, () => 'x'))
    assert.deepEqual(await enough.page(2), { items: '', next: undefined, isWhole: true, isEndless: false })
  })

  it('is the failure of the upstream page', async () => {
    const failure = fail({ problem: 'upstream-unreachable' })
    assert.equal(await gather(undefined, 2, async () => failure), failure)
  })

  it('takes as many characters as it may have, and one item whatever its length', async () => {
    const count = async (...sizes: number[]) => {
      const fetch = async () => ({ items: sizes, next: undefined })
      const gathered = await gather<number>(undefined, 10, fetch, undefined, size => size)
      assert(!isFailure(gathered))
      return gathered.items.length
    }
    const most = limits.PAGE_CHARACTERS
    assert.equal(await count(most - 1, 1, 1), 2)
    assert.equal(await count(most + 1, 1), 1)
    assert.equal(await count(most + 1), 1)
  })

  it('ends before it has too many characters, and the next one goes on', async () => {
    const long = 'x'.repeat(limits.PAGE_CHARACTERS * 0.4)
    const fetch = async () => ({ items: [long, long, long, 'short'], next: undefined })
    const first = await gather<string>(undefined, 10, fetch)
    assert(!isFailure(first))
    assert.deepEqual([first.items.length, first.links.get('next')], [2, { link: '', skip: 2 }])
    const second = await gather<string>(first.links.get('next'), 10, fetch)
    assert(!isFailure(second))
    assert.deepEqual([second.items, second.links.size], [[long, 'short'], 0])
  })
})
