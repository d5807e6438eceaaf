import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../../core/index.ts'
import { failFor, limits } from '../../../fhir/index.ts'
import type { PageCursor } from '../paging.ts'
import { END } from './continuation.ts'
import { gather } from './gather.ts'

const next = (cursor: PageCursor) => ({ kind: 'next', cursor }) as const

/** Pages of letters, of which the caller may see the capitals. The link of a page is its number, that of the first is empty. */
function pagesOf(...pages: readonly string[]) {
  const asked: string[] = []
  const fetch = async ({ link }: PageCursor) => {
    asked.push(link)
    const at = Number(link)
    const items = [...(pages[at] ?? '')].filter(letter => letter === letter.toUpperCase())
    const continuation = at + 1 < pages.length ? next({ link: String(at + 1) }) : END
    return { items, continuation }
  }
  const page = async (count: number, from?: PageCursor) => {
    const gathered = await gather<string>(from, count, [fetch])
    assert(!isFailure(gathered))
    const { items, links, extent } = gathered
    return { items: items.join(''), next: links.get('next'), extent }
  }
  return { asked, page }
}

describe('a page gathered from pages of the upstream', () => {
  it('has the requested number of items, and a next link only if more items are visible (GATEWAY-5)', async () => {
    const { page } = pagesOf('aBc', 'd', 'EFg', 'h')
    const second = { link: '2', skip: 1 }
    assert.deepEqual(await page(2), { items: 'BE', next: second, extent: 'part' })
    assert.deepEqual(await page(2, second), { items: 'F', next: undefined, extent: 'part' })
    assert.deepEqual(await page(3), { items: 'BEF', next: undefined, extent: 'whole' })
    assert.deepEqual(await page(1, { link: '2' }), {
      items: 'E',
      next: second,
      extent: 'part',
    })
  })

  it('continues within one page of the upstream, also within the first', async () => {
    const { page } = pagesOf('ABCDE')
    const first = await page(2)
    assert.deepEqual([first.items, first.next], ['AB', { link: '', skip: 2 }])
    const next = await page(2, first.next)
    assert.deepEqual([next.items, next.next, next.extent], ['CD', { link: '', skip: 4 }, 'part'])
    assert.deepEqual((await page(2, next.next)).items, 'E')
    assert.deepEqual((await page(0)).next, { link: '' })
  })

  it('is gathered from at most 50 pages of the upstream', async () => {
    const { asked, page } = pagesOf(...Array.from({ length: 51 }, () => 'x'))
    assert.deepEqual(await page(2), { items: '', next: { link: '50' }, extent: 'endless' })
    assert.deepEqual([asked.length, asked[0], asked.at(-1)], [50, '', '49'])
    const enough = pagesOf(...Array.from({ length: 50 }, () => 'x'))
    assert.deepEqual(await enough.page(2), { items: '', next: undefined, extent: 'whole' })
  })

  it('fails if a page of the upstream fails', async () => {
    const failure = failFor('upstream-unreachable')
    assert.equal(await gather(undefined, 2, [async () => failure]), failure)
  })

  it('has items up to the limit of characters, and at least one item of any length', async () => {
    const count = async (...sizes: number[]) => {
      const fetch = async () => ({ items: sizes, continuation: END })
      const gathered = await gather<number>(undefined, 10, [fetch], { getSize: size => size })
      assert(!isFailure(gathered))
      return gathered.items.length
    }
    const most = limits.PAGE_CHARACTERS
    assert.equal(await count(most - 1, 1, 1), 2)
    assert.equal(await count(most + 1, 1), 1)
    assert.equal(await count(most + 1), 1)
  })

  it('ends before the limit of characters, and the next page continues', async () => {
    const long = 'x'.repeat(limits.PAGE_CHARACTERS * 0.4)
    const fetch = async () => ({ items: [long, long, long, 'short'], continuation: END })
    const first = await gather<string>(undefined, 10, [fetch])
    assert(!isFailure(first))
    assert.deepEqual([first.items.length, first.links.get('next')], [2, { link: '', skip: 2, fits: 4 }])
    const second = await gather<string>(first.links.get('next'), 10, [fetch])
    assert(!isFailure(second))
    assert.deepEqual([second.items, second.links.size], [[long, 'short'], 0])
  })

  it('continues after the items that were shown if the page is now too large to be requested as a whole', async () => {
    const parts = ['AB', 'CD', 'EF']
    const fetch = async ({ link }: PageCursor) => {
      const at = Number(link)
      const continuation = at + 1 < parts.length ? next({ link: String(at + 1) }) : END
      return { items: [...(parts[at] ?? '')], continuation, isShortened: at === 0 }
    }
    const page = await gather<string>({ link: '', skip: 4 }, 1, [fetch])
    assert(!isFailure(page))
    assert.deepEqual([page.items.join(''), page.links.get('next')], ['E', { link: '2', skip: 1 }])
  })

  it('shows an item again rather than none if the page has become shorter by itself', async () => {
    const { page } = pagesOf('AB', 'CD')
    assert.equal((await page(2, { link: '', skip: 3 })).items, 'CD')
  })
})
