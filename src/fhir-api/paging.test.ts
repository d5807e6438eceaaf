import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import { fail, isFailure } from '../core/index.ts'
import { createOutcome, failFor, type Params, type Refused, Work } from '../fhir/index.ts'
import { fullAccess, grantFingerprint, noAccess } from '../smart/index.ts'
import { createSealer } from '../store/index.ts'
import { type Cursors, createLinks, createPages, type Page, resumePage } from './paging.ts'

const grant = { scopes: [], clientId: 'app' }
const refused: Refused = {
  allowed: false,
  status: 403,
  headers: {},
  outcome: createOutcome('forbidden', 'No'),
}
const page = {
  path: '/Condition',
  params: [['code', 'x']] as Params,
  cursor: { link: '?more', skip: 2 },
  grant: grantFingerprint(grant),
}

function makeRequest(params: Params, isAllowed = true, by = grant) {
  const interaction = { kind: 'search-type', type: 'Condition', params } as const
  const decide = () => (isAllowed ? ({ allowed: true, access: noAccess } as const) : refused)
  return {
    interaction,
    access: fullAccess,
    preconditions: {},
    work: new Work(),
    isRevoked: async () => false,
    requestId: '1',
    report: () => {},
    preferences: { answer: 'minimal', lenient: false } as const,
    authenticated: { allowed: true, grant: by, decide } as const,
    connection: { destroyed: false, once: () => undefined },
  }
}

function resume(params: Params, { opened = page, isAllowed = true, by = grant } = {}) {
  const pages = {
    parameter: '_page',
    seal: () => '',
    open: (text: string) => (text === 'sealed' ? opened : undefined),
  }
  return resumePage({ pages }, makeRequest(params, isAllowed, by), '/Condition')
}

const PAGE: Params = [['_page', 'sealed']]

const ROOM = 2_048

describe('createPages', () => {
  const sealer = createSealer('secret')
  const pages = createPages(sealer, '_page', 'a test', ROOM)

  it('opens only pages that it sealed', () => {
    assert.deepEqual(pages.open(pages.seal(page)), page)
    assert.equal(pages.open('forged'), undefined)
    assert.equal(createPages(sealer, '_page', 'another test', ROOM).open(pages.seal(page)), undefined)
  })

  it('opens the pages of 0.3.1, which compressed all positions', () => {
    const { cursor, ...request } = page
    const packed = deflateRawSync(JSON.stringify([cursor, []])).toString('base64url')
    const sealed = sealer.seal(`${JSON.stringify(request)}\n${packed.padEnd(ROOM)}`, 'a test')
    assert.deepEqual(pages.open(sealed), page)
  })

  it('opens no page of a version that sealed one part', () => {
    assert.equal(pages.open(sealer.seal(JSON.stringify(page).padEnd(512), 'a test')), undefined)
  })

  const random = (bytes: number) => randomBytes(bytes).toString('base64url')
  const link = (query: string) => ({ link: `/Condition?${query}`, skip: Number.parseInt(random(3), 36) || 0 })
  /** Positions as backends make them: rows, links of upstreams, several searches at once. */
  const CURSORS: readonly Page['cursor'][] = [
    null,
    [7],
    [7_654_321, 'Smith', 'Ann', '2024-01-01T00:00:00.000Z'],
    [7_654_321, 'Þórsdóttir', 'Ægir', '2024-01-01T00:00:00.000Z'],
    { link: '' },
    { link: '', skip: 99 },
    link('_getpages=0b3c1c9e-7d0e-4c52-9d64-0c7d0e0f1a2b&_getpagesoffset=100&_bundletype=searchset'),
    link(`_page=${random(100)}`),
    link(`_page=v1.${random(652)}`),
    { link: '', parts: Array.from({ length: 12 }, () => link(`_getpages=${random(24)}`)) },
  ]

  it('seals all positions of a request to the same length, however long its parameters are (ABSENT-7)', () => {
    const trails = CURSORS.flatMap(it => [[], [it], [it, null], Array(10).fill(it)])
    for (const characters of [0, 1, 100, 255, 256, 300, 600]) {
      const params: Params = [['code', 'x'.repeat(characters)]]
      const lengths = CURSORS.flatMap(cursor =>
        trails.map(before => pages.seal({ ...page, params, cursor, before }).length),
      )
      assert.equal(new Set(lengths).size, 1, `${characters}: ${[...new Set(lengths)]}`)
    }
  })

  it('keeps the position and the page before it, and as many other pages as there is room for', () => {
    for (const cursor of CURSORS)
      for (const last of CURSORS) {
        const before = [...CURSORS, last]
        const opened = pages.open(pages.seal({ ...page, cursor, before }))
        assert.deepEqual(opened?.cursor, cursor)
        const kept = opened?.before ?? []
        assert.deepEqual(kept, before.slice(-kept.length))
        assert(kept.length > 0)
      }
  })

  it('takes more room for a position that is longer', () => {
    const cursor = link(random(3_000))
    const sealed = pages.seal({ ...page, cursor })
    assert.deepEqual(pages.open(sealed)?.cursor, cursor)
    assert.equal(sealed.length, pages.seal({ ...page, cursor: link(random(3_100)) }).length)
  })
})

describe('createLinks', () => {
  it('links to this page by its parameters, and to others by sealed positions', () => {
    const seal = (sealed: object) => encodeURIComponent(JSON.stringify(sealed))
    const pages = { parameter: '_page', seal, open: () => undefined }
    const links = (cursors: Cursors) =>
      createLinks(
        { baseUrl: 'http://fhir.test', pages },
        makeRequest(page.params),
        '/Condition',
        [['code', 'y']],
        cursors,
      )
    const self = { relation: 'self', url: 'http://fhir.test/Condition?code=y' }
    assert.deepEqual(links(new Map()), [self])
    assert.deepEqual(links(new Map([['next', page.cursor]])), [
      self,
      { relation: 'next', url: `http://fhir.test/Condition?_page=${seal(page)}` },
    ])
  })
})

describe('the links of consecutive pages', () => {
  const pages = createPages(createSealer('secret'), '_page', 'a test', ROOM)
  const open = (params: Params, next: number | undefined) => {
    const resumed = resumePage({ pages }, makeRequest(params), '/Condition')
    assert(!isFailure(resumed))
    const cursors: Cursors = new Map(next === undefined ? [] : [['next', { next }]])
    const context = { baseUrl: 'http://fhir.test', pages }
    const links = createLinks(context, resumed.request, '/Condition', [], cursors, resumed.trail)
    const follow = (relation: string): Params => {
      const url = links.find(it => it.relation === relation)?.url ?? ''
      return [...new URL(url, 'http://fhir.test').searchParams]
    }
    return { cursor: resumed.cursor, follow }
  }

  it('lead to the page before, also where the backend finds only the next one', () => {
    const first = open(page.params, 1)
    assert.deepEqual(first.follow('previous'), [])
    const second = open(first.follow('next'), 2)
    const third = open(second.follow('next'), undefined)
    assert.deepEqual(third.cursor, { next: 2 })
    const secondAgain = open(third.follow('previous'), 2)
    assert.deepEqual(secondAgain.cursor, { next: 1 })
    assert.deepEqual(open(secondAgain.follow('next'), undefined).cursor, { next: 2 })
    assert.equal(open(secondAgain.follow('previous'), 1).cursor, undefined)
  })

  it('do not grow without end', () => {
    let params = page.params
    const lengths: number[] = []
    for (let at = 1; at < 30; at++) {
      params = open(params, at).follow('next')
      lengths.push(params[0]?.[1].length ?? 0)
    }
    assert.ok((lengths.at(-1) ?? 0) <= (lengths[11] ?? 0) + 20)
  })
})

describe('resumePage', () => {
  it('continues the first request, and checks the access again', () => {
    const resumed = resume(PAGE)
    assert(!isFailure(resumed))
    assert.deepEqual([resumed.request.interaction.params, resumed.cursor], [page.params, page.cursor])
    assert.equal(resumed.request.access, noAccess)
    assert.deepEqual(resume(PAGE, { isAllowed: false }), fail({ reason: 'refused', refused }))
  })

  it('starts with the first page without a link', () => {
    const resumed = resume([['code', 'y']])
    assert(!isFailure(resumed))
    assert.equal(resumed.cursor, undefined)
  })

  it('refuses a link that was issued under another grant', () => {
    assert.deepEqual(resume(PAGE, { by: { ...grant, clientId: 'other' } }), failFor('outside-access'))
  })

  it('refuses a modified link', () => {
    const unreadable = failFor('page-link-changed')
    assert.deepEqual(resume([['_page', 'forged']]), unreadable)
    assert.deepEqual(resume([...PAGE, ['code', 'y']]), unreadable)
    assert.deepEqual(resume(PAGE, { opened: { ...page, path: '/Patient' } }), unreadable)
    assert.deepEqual(resume([...PAGE, ...PAGE]), unreadable)
  })

  it('accepts _count and _total that a client adds, and ignores _format', () => {
    const added = [
      ['_format', 'json'],
      ['_count', '7'],
      ['_total', 'accurate'],
    ] as const
    const resumed = resume([...PAGE, ...added])
    assert(!isFailure(resumed))
    assert.deepEqual(resumed.request.interaction.params, [...page.params, ...added.slice(1)])
  })
})
