import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fail, outcome, type Params, type Refused } from '../../../fhir/index.ts'
import { grantFingerprint, noAccess } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import type { Place } from './pages.ts'
import { turnPage } from './turn-page.ts'

const grant = { scopes: [], clientId: 'app' }
const refused: Refused = { allowed: false, status: 403, headers: {}, outcome: outcome('forbidden', 'No') }
const place: Place = {
  of: '/Condition',
  params: [['code', 'x']],
  spot: { link: '?more', skip: 2 },
  holder: grantFingerprint(grant),
}

function turn(params: Params, { opened = place, isAllowed = true, by = grant } = {}) {
  const interaction = { kind: 'search-type', type: 'Condition', params } as const
  const decide = () => (isAllowed ? ({ allowed: true, access: noAccess } as const) : refused)
  const context = { pages: { open: (text: string) => (text === 'sealed' ? opened : undefined) } }
  const call = { interaction, authenticated: { allowed: true, grant: by, decide } }
  return turnPage(context as unknown as Context, call as unknown as Call<typeof interaction>, '/Condition')
}

const PAGE: Params = [['_gateway-page', 'sealed']]

describe('a page that is turned', () => {
  it('goes on as it was first asked, judged anew', () => {
    const turned = turn(PAGE)
    assert(!('problem' in turned))
    assert.deepEqual([turned.call.interaction.params, turned.spot], [place.params, place.spot])
    assert.equal(turned.call.access, noAccess)
    assert.deepEqual(turn(PAGE, { isAllowed: false }), fail({ problem: 'refused', refused }))
  })

  it('is none where there is no link', () => {
    const turned = turn([['code', 'y']])
    assert(!('problem' in turned))
    assert.equal(turned.spot, undefined)
  })

  it('is of the grant that got it', () => {
    assert.deepEqual(turn(PAGE, { by: { ...grant, clientId: 'other' } }), fail({ problem: 'out-of-reach' }))
  })

  it('is followed as it was given', () => {
    const unreadable = fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read page: follow the link as it was given',
    })
    assert.deepEqual(turn([['_gateway-page', 'forged']]), unreadable)
    assert.deepEqual(turn([...PAGE, ['code', 'y']]), unreadable)
    assert.deepEqual(turn(PAGE, { opened: { ...place, of: '/Patient' } }), unreadable)
    assert.deepEqual(turn([...PAGE, ...PAGE]), unreadable)
  })

  it('takes _count and _total that a client adds, and drops _format', () => {
    const added = [
      ['_format', 'json'],
      ['_count', '7'],
      ['_total', 'accurate'],
    ] as const
    const turned = turn([...PAGE, ...added])
    assert(!('problem' in turned))
    assert.deepEqual(turned.call.interaction.params, [...place.params, ...added.slice(1)])
  })
})
