import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fail, isFailure } from '../core/index.ts'
import { createOutcome, type Params, type Refused } from '../fhir/index.ts'
import { fullAccess, grantFingerprint, noAccess } from '../smart/index.ts'
import { createSealer } from '../store/index.ts'
import { type Cursors, createLinks, createPages, resumePage } from './paging.ts'

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

describe('createPages', () => {
  const sealer = createSealer('secret')
  const pages = createPages(sealer, '_page', 'a test')

  it('opens only pages that it sealed', () => {
    assert.deepEqual(pages.open(pages.seal(page)), page)
    assert.equal(pages.open('forged'), undefined)
    assert.equal(createPages(sealer, '_page', 'another test').open(pages.seal(page)), undefined)
  })

  it('seals all positions of a search to the same length, however long its parameters are (ABSENT-7)', () => {
    const seal = (position: number, characters: number) =>
      pages.seal({
        ...page,
        params: [['code', 'x'.repeat(characters)]],
        cursor: [position, 'Smith'],
        before: [null, [position, 'Shaw']],
      }).length
    for (let characters = 0; characters < 600; characters++)
      assert.equal(seal(7, characters), seal(7_654_321, characters))
    assert.ok(seal(7, 600) > seal(7, 0))
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
  const pages = createPages(createSealer('secret'), '_page', 'a test')
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
    assert.deepEqual(resume(PAGE, { isAllowed: false }), fail({ problem: 'refused', refused }))
  })

  it('starts with the first page without a link', () => {
    const resumed = resume([['code', 'y']])
    assert(!isFailure(resumed))
    assert.equal(resumed.cursor, undefined)
  })

  it('refuses a link that was issued under another grant', () => {
    assert.deepEqual(
      resume(PAGE, { by: { ...grant, clientId: 'other' } }),
      fail({ problem: 'outside-access' }),
    )
  })

  it('refuses a modified link', () => {
    const unreadable = fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read page: follow the link as it was given',
    })
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
