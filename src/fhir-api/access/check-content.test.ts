import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ExactResource, failFor, parseExact, type Resource, Work } from '../../fhir/index.ts'
import { type Access, type AccessFilter, fullAccess, type Panel } from '../../smart/index.ts'
import { createAccessCache } from '../access-cache.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'
import { checkNewContent } from './check-content.ts'

const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
const makeAccess = (filter: AccessFilter): Access => ({
  filterFor: (type, permission) => (permission === 'c' && type === 'Condition' ? filter : []),
})
const ann = makeAccess([{ patient: 'ann', exclusive: true }])
const panelled = makeAccess([{ panel, exclusive: true }])
const condition = (patient: string, more: object = {}): Resource => ({
  resourceType: 'Condition',
  subject: { reference: `Patient/${patient}` },
  ...more,
})

/** Returns the reason why a caller may not create the content. Ann is on the panel. */
async function check(
  access: Access,
  resource: Resource,
  { members, newPatients = [], excluded = [] }: Partial<Held> = {},
) {
  const context = {
    baseUrl: 'http://fhir.test/fhir',
    accessCache: createAccessCache(),
    excludedTypes: new Set(excluded),
    session: {
      findDocuments: () => [],
      read: () => undefined,
      panelMembers: async () => members ?? { includes: (_panel: Panel, id: string) => id === 'ann' },
    },
  } as unknown as Context
  const together = {
    identities: new Set<string>(),
    newPatients: new Map(newPatients),
    known: new Set<string>(),
  }
  const content = parseExact(JSON.stringify(resource)) as ExactResource
  return (
    await checkNewContent(
      context,
      { access, work: new Work() } as FhirRequest,
      'c',
      content,
      undefined,
      together,
    )
  )?.reason
}

interface Held {
  readonly members: Failure
  readonly newPatients: readonly (readonly [string, Resource])[]
  readonly excluded: readonly string[]
}

describe('checkNewContent', () => {
  it('permits writes within the access filter, and no others', async () => {
    for (const access of [ann, panelled]) {
      assert.equal(await check(access, condition('ann')), undefined)
      assert.equal(await check(access, condition('bob')), 'outside-access')
      const referring = condition('ann', {
        extension: [{ url: 'x', valueReference: { reference: 'Patient/bob' } }],
      })
      assert.equal(await check(access, referring), 'outside-access')
    }
    assert.equal(await check(makeAccess('everything'), condition('bob')), undefined)
    assert.equal(await check(makeAccess([]), condition('ann')), 'outside-access')
  })

  it('refuses a conditional reference from a caller who may not search', async () => {
    const searching = condition('ann', { recorder: { reference: 'Practitioner?name=x' } })
    assert.equal(await check(makeAccess('everything'), searching), 'hidden-target')
    assert.equal(await check(fullAccess, searching), undefined)
  })

  it('refuses types that the backend does not serve', async () => {
    assert.equal(await check(ann, condition('ann'), { excluded: ['Condition'] }), 'outside-access')
  })

  it('fails if the backend cannot read the panel', async () => {
    const members = failFor('upstream-unreachable')
    assert.equal(await check(panelled, condition('ann'), { members }), 'upstream-unreachable')
  })

  it('reads no panel if the caller may write everything', async () => {
    const members = failFor('upstream-unreachable')
    const access: Access = {
      filterFor: (_type, permission) => (permission === 'c' ? 'everything' : [{ panel }]),
    }
    assert.equal(await check(access, condition('bob'), { members }), undefined)
  })

  it('counts a Patient of the same commit as a member of the panel of its managing organization', async () => {
    const managed = (reference: unknown): Partial<Held> => ({
      newPatients: [['new', { resourceType: 'Patient', managingOrganization: { reference } }]],
    })
    assert.equal(await check(panelled, condition('new')), 'outside-access')
    assert.equal(await check(panelled, condition('new'), managed('Organization/north')), undefined)
    assert.equal(await check(panelled, condition('ann'), managed('Organization/north')), undefined)
    for (const reference of ['Organization/south', 'Practitioner/north', 5, undefined])
      assert.equal(await check(panelled, condition('new'), managed(reference)), 'outside-access')
    assert.equal(await check(panelled, condition('other'), managed('Organization/north')), 'outside-access')
    const odd: Partial<Held> = {
      newPatients: [['new', { resourceType: 'Patient', managingOrganization: 'Organization/north' }]],
    }
    assert.equal(await check(panelled, condition('new'), odd), 'outside-access')
  })

  it('refuses a DocumentReference that names a Binary outside the access filter', async () => {
    const document = {
      resourceType: 'DocumentReference',
      subject: { reference: 'Patient/ann' },
      content: [{ attachment: { url: 'Binary/b' } }],
    }
    const access: Access = { filterFor: type => (type === 'DocumentReference' ? 'everything' : []) }
    assert.equal(await check(access, document), 'outside-access')
  })
})
