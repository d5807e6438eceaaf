import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fail, isFailure } from '../../core/index.ts'
import { failFor, type Resource } from '../../fhir/index.ts'
import { type Access, type AccessFilter, fullAccess, type Panel } from '../../smart/index.ts'
import { createAccessCache } from '../access-cache.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import { type Failure, failBroken } from '../response.ts'
import type { StatedVersion, StoredVersion } from '../stored-version.ts'
import { findHidden, findResource, isWithin, lookUp } from './find-resource.ts'

const makeCondition = (patient: string): Resource => ({
  resourceType: 'Condition',
  id: 'c',
  subject: { reference: `Patient/${patient}` },
})
const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
const ann: Access = { filterFor: () => [{ patient: 'ann' }] }
const panelled: Access = { filterFor: () => [{ panel }] }
const makeRequest = (access: Access) => ({ access }) as FhirRequest
const broken = failBroken('not JSON')
const unreachable = failFor('upstream-unreachable')

function store(resource: Resource | Failure, more: Partial<StoredVersion> = {}): StoredVersion {
  const text = JSON.stringify(resource)
  return {
    type: 'Condition',
    id: 'c',
    etag: 'W/"1"',
    lastModified: 0,
    order: 1,
    deleted: false,
    isTrusted: false,
    text,
    parse: () => resource,
    ...more,
  }
}

const deleted = store(makeCondition('ann'), { deleted: true, text: undefined })

interface Held {
  /** The current version of the resource `c`. */
  readonly current?: StoredVersion | Failure
  /** The content before the deletion, for a backend that stores it separately. */
  readonly last?: Resource | Failure | 'none'
  /** The response for any other id. */
  readonly other?: StoredVersion | Failure
  readonly members?: Failure
}

/** A backend that holds one resource, and the steps that a lookup takes in it. Ann is on the panel. */
function open({ current, last, other, members }: Held) {
  const steps: string[] = []
  const context = {
    baseUrl: 'http://fhir.test/fhir',
    accessCache: createAccessCache(),
    versionAccess: 'current',
    excludedTypes: new Set(['AuditEvent']),
    session: {
      read(_type: string, id: string) {
        steps.push('read')
        return id === 'c' ? current : other
      },
      ...(last !== undefined && {
        readLast() {
          steps.push('last')
          return last === 'none' ? undefined : last
        },
      }),
      async panelMembers() {
        steps.push('members')
        return members ?? { includes: (_panel: Panel, patient: string) => patient === 'ann' }
      },
    },
  } as unknown as Context
  const find = (access: Access) =>
    lookUp(context, makeRequest(access), { permission: 'r', type: 'Condition', id: 'c' })
  return { context, steps, find }
}

describe('lookUp', () => {
  const mine = store(makeCondition('ann'))
  const others = store(makeCondition('bob'))

  it('finds a resource within the access filter, and no other', async () => {
    for (const access of [ann, panelled]) {
      assert.equal(await open({ current: mine }).find(access), mine)
      assert.equal(await open({ current: others }).find(access), 'outside')
      assert.equal(await open({}).find(access), 'absent')
    }
    assert.equal(await open({ current: others }).find(fullAccess), others)
    assert.equal(await open({}).find(fullAccess), 'absent')
  })

  it('never finds a type that the backend does not serve', async () => {
    const event = store({ resourceType: 'AuditEvent', id: 'c' }, { type: 'AuditEvent' })
    const { context } = open({ current: event })
    assert.equal(
      await lookUp(context, makeRequest(fullAccess), { permission: 'r', type: 'AuditEvent', id: 'c' }),
      'outside',
    )
  })

  it('finds a deleted resource by its last content', async () => {
    const kept = store(makeCondition('ann'), { deleted: true })
    assert.equal(await open({ current: kept }).find(ann), kept)
    assert.equal(await open({ current: store(makeCondition('bob'), { deleted: true }) }).find(ann), 'outside')
    assert.equal(await open({ current: deleted, last: makeCondition('ann') }).find(ann), deleted)
    assert.equal(await open({ current: deleted, last: makeCondition('bob') }).find(ann), 'outside')
    assert.equal(await open({ current: deleted, last: 'none' }).find(ann), 'outside')
    assert.equal(await open({ current: deleted }).find(fullAccess), deleted)
  })

  it('finds no resource by its previous content', async () => {
    assert.equal(await open({ current: others, last: makeCondition('ann') }).find(ann), 'outside')
    assert.equal(await open({ last: makeCondition('ann') }).find(ann), 'absent')
  })

  it('takes the same steps for resources that are absent, deleted and outside the access filter', async () => {
    for (const held of [{ current: others }, { current: deleted }, {}]) {
      const { find, steps } = open({ ...held, last: 'none' })
      await find(panelled)
      // The content of a stored resource may be large, and is not read again.
      const second = held.current === deleted ? 'last' : 'read'
      assert.deepEqual(steps, ['read', 'members', second, 'members'])
    }
    const { find, steps } = open({ current: mine, last: 'none' })
    await find(panelled)
    assert.deepEqual(steps, ['read', 'members'])
  })

  it('fails if the backend cannot read the panel or the deleted content', async () => {
    assert.equal(await open({ current: mine, members: unreachable }).find(panelled), unreachable)
    assert.equal(await open({ current: deleted, last: unreachable }).find(ann), unreachable)
    assert.equal(
      await open({ current: deleted, last: makeCondition('ann'), members: unreachable }).find(panelled),
      unreachable,
    )
  })
})

describe('lookUp with a response that cannot be checked', () => {
  it('shows a failure of the whole backend', async () => {
    const { find, steps } = open({ current: unreachable })
    assert.equal(await find(ann), unreachable)
    assert.deepEqual(steps, ['read'])
  })

  it('shows a failure to a caller who may see everything, or whose grant names the id', async () => {
    assert.equal(await open({ current: broken }).find(fullAccess), broken)
    assert.equal(await open({ current: broken }).find({ filterFor: () => [{ id: 'c' }] }), broken)
  })

  it('shows a limited caller a failure only if another id has one too', async () => {
    const declined = fail({
      ...failFor('upstream-declined'),
      headers: {},
      status: 403,
      outcome: { resourceType: 'OperationOutcome', issue: [] },
    })
    for (const failure of [broken, declined]) {
      assert.equal(await open({ current: failure, other: broken }).find(ann), failure)
      assert.equal(await open({ current: failure, other: store(makeCondition('bob')) }).find(ann), failure)
      assert.equal(await open({ current: failure, other: deleted }).find(ann), 'outside')
      assert.equal(await open({ current: failure }).find(ann), 'outside')
    }
  })

  it('treats content that cannot be parsed in the same way', async () => {
    const unreadable = store(broken)
    assert.equal(await open({ current: unreadable }).find(ann), 'outside')
    assert.equal(await open({ current: unreadable, other: broken }).find(ann), broken)
  })

  it('takes as many steps as for a resource outside the access filter', async () => {
    const { find, steps } = open({ current: broken })
    await find(panelled)
    assert.deepEqual(steps, ['read', 'members', 'read', 'members'])
    assert.equal(await open({ current: broken, members: unreachable }).find(panelled), unreachable)
  })
})

describe('findResource', () => {
  it('returns the same failure for resources that are absent and outside the access filter', async () => {
    for (const held of [{ current: store(makeCondition('bob')) }, {}]) {
      const found = await findResource(open(held).context, makeRequest(ann), {
        permission: 'r',
        type: 'Condition',
        id: 'c',
      })
      assert(isFailure(found))
      assert.equal(found.reason, 'outside-access')
    }
    const found = await findResource(open({}).context, makeRequest(fullAccess), {
      permission: 'r',
      type: 'Condition',
      id: 'c',
    })
    assert(isFailure(found))
    assert.equal(found.reason, 'absent')
  })
})

describe('findHidden', () => {
  const find = async (access: Access, current: StoredVersion, versionAccess = 'current') => {
    const { context, steps } = open({ current })
    const hidden = await findHidden(
      { ...context, versionAccess } as Context,
      makeRequest(access),
      'Condition',
      'c',
    )
    return [hidden?.reason, steps.length]
  }

  it('fails if the current version is outside the access filter', async () => {
    assert.deepEqual(await find(ann, store(makeCondition('bob'))), ['outside-access', 1])
    assert.deepEqual(await find(ann, store(makeCondition('ann'))), [undefined, 1])
  })

  it('checks the permission to read', async () => {
    const only = (filter: AccessFilter, other: AccessFilter): Access => ({
      filterFor: (_type, permission) => (permission === 'r' ? filter : other),
    })
    const ofAnn = [{ patient: 'ann' }]
    assert.deepEqual(await find(only('everything', ofAnn), store(makeCondition('bob'))), [undefined, 0])
    assert.deepEqual(await find(only(ofAnn, 'everything'), store(makeCondition('bob'))), [
      'outside-access',
      1,
    ])
  })

  it('reads nothing if each version is checked by itself, or if the caller may read everything', async () => {
    assert.deepEqual(await find(ann, store(makeCondition('bob')), 'version'), [undefined, 0])
    assert.deepEqual(await find(fullAccess, store(makeCondition('bob'))), [undefined, 0])
  })
})

describe('isWithin', () => {
  /** Checks the same content twice, and returns both results and the number of parses. */
  async function checkTwice(access: Access, resource: Resource, more: Partial<StoredVersion> = {}) {
    const { context } = open({})
    let parsed = 0
    const recalled: StatedVersion[] = []
    const stored = store(resource, {
      ...more,
      stated: { etag: 'W/"7"' },
      recall: it => recalled.push(it),
      parse: () => {
        parsed += 1
        return resource
      },
    })
    const check = () => isWithin(context, makeRequest(access), 'r', stored, JSON.stringify(resource))
    return [[await check(), await check()], parsed, recalled]
  }

  it('parses permitted content once, and remembers the version that it states', async () => {
    assert.deepEqual(await checkTwice(ann, makeCondition('ann')), [[true, true], 1, [{ etag: 'W/"7"' }]])
  })

  it('checks refused content again, and content that a panel permits', async () => {
    assert.deepEqual(await checkTwice(ann, makeCondition('bob')), [[false, false], 2, []])
    assert.deepEqual(await checkTwice(panelled, makeCondition('ann')), [[true, true], 2, []])
  })

  it('parses no content that the backend wrote itself for a caller who may see everything', async () => {
    assert.deepEqual(await checkTwice(fullAccess, makeCondition('bob'), { isTrusted: true }), [
      [true, true],
      0,
      [],
    ])
    assert.deepEqual(await checkTwice(fullAccess, makeCondition('bob')), [
      [true, true],
      1,
      [{ etag: 'W/"7"' }],
    ])
    assert.deepEqual(await checkTwice(ann, makeCondition('bob'), { isTrusted: true }), [
      [false, false],
      2,
      [],
    ])
  })
})
