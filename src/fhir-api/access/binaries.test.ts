import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { failFor, type Interaction, limits, type Resource } from '../../fhir/index.ts'
import { type Access, type AccessFilter, fullAccess, type Panel } from '../../smart/index.ts'
import { createAccessCache } from '../access-cache.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'
import type { SearchEntry } from '../searchset.ts'
import type { StoredVersion } from '../stored-version.ts'
import { checkNamedBinaries, findThroughDocument, isLimitedBinary } from './binaries.ts'

const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
const unreachable = failFor('upstream-unreachable')
const makeAccess = (filters: Readonly<Record<string, AccessFilter>>): Access => ({
  filterFor: (type, permission) => filters[`${type}.${permission}`] ?? filters[type] ?? [],
})
const ofAnn: AccessFilter = [{ patient: 'ann' }]
const ann = makeAccess({ Binary: ofAnn, DocumentReference: ofAnn })
const makeRequest = (access: Access, interaction?: Interaction) => ({ access, interaction }) as FhirRequest

function makeDocument(patient: string, ...names: string[]): Resource {
  const content = names.map(url => ({ attachment: { url } }))
  return { resourceType: 'DocumentReference', subject: { reference: `Patient/${patient}` }, content }
}

const makeEntry = (document: Resource, order: number): SearchEntry => ({
  type: 'DocumentReference',
  id: 'd',
  text: '{}',
  order,
  parse: () => document,
})

function makeBinary(more: object = {}, stored: Partial<StoredVersion> = {}): StoredVersion {
  const resource = { resourceType: 'Binary', id: 'b', ...more }
  const text = JSON.stringify(resource)
  return {
    type: 'Binary',
    id: 'b',
    etag: 'W/"1"',
    lastModified: 0,
    deleted: false,
    isTrusted: false,
    order: 5,
    text,
    parse: () => resource,
    ...stored,
  }
}

interface Held {
  readonly binary?: StoredVersion | Failure | undefined
  readonly documents?: readonly SearchEntry[]
  readonly members?: Failure
}

/** A backend with one Binary and the DocumentReferences that name it. Ann is on the panel. */
function open({ binary, documents = [], members }: Held) {
  const read: string[] = []
  const session = {
    findDocuments: () => documents,
    read(type: string, id: string) {
      read.push(id)
      return type === 'Binary' && id === 'b' ? binary : undefined
    },
    panelMembers: async () => members ?? { includes: (_panel: Panel, id: string) => id === 'ann' },
  }
  const context = { baseUrl: 'http://fhir.test/fhir', accessCache: createAccessCache(), session }
  return { read, context: context as unknown as Context }
}

describe('isLimitedBinary', () => {
  const of = (type: string, access: Access) =>
    isLimitedBinary(makeRequest(access, { kind: 'read', type, id: 'b', params: [] }))

  it('holds for a Binary of a caller who may read some', () => {
    assert.equal(of('Binary', ann), true)
    assert.equal(of('Binary', makeAccess({ 'Binary.r': ofAnn })), true)
    assert.equal(of('Binary', fullAccess), false)
    assert.equal(of('Binary', makeAccess({})), false)
    assert.equal(of('Binary', makeAccess({ 'Binary.u': ofAnn })), false)
    assert.equal(of('Condition', makeAccess({ Binary: ofAnn, Condition: ofAnn })), false)
    assert.equal(isLimitedBinary(makeRequest(ann, { kind: 'bundle' })), false)
  })
})

describe('findThroughDocument', () => {
  const mine = makeEntry(makeDocument('ann', 'Binary/b'), 6)
  const find = async (held: Held, access = ann) => {
    const { context, read } = open({ binary: makeBinary(), documents: [mine], ...held })
    const found = await findThroughDocument(context, makeRequest(access), 'b')
    return [found !== undefined, read.length]
  }

  it('finds a Binary that a document within the access filter names', async () => {
    assert.deepEqual(await find({}), [true, 1])
    const others = makeEntry(makeDocument('bob', 'Binary/b'), 6)
    assert.deepEqual(await find({ documents: [others] }), [false, 1])
    assert.deepEqual(await find({ documents: [others, mine] }), [true, 1])
  })

  it('reads no Binary that no document names', async () => {
    assert.deepEqual(await find({ documents: [] }), [false, 0])
  })

  it('requires a document that was written after the Binary', async () => {
    const written = (order: number) => [makeEntry(makeDocument('ann', 'Binary/b'), order)]
    assert.deepEqual(await find({ documents: written(5) }), [true, 1])
    assert.deepEqual(await find({ documents: written(4) }), [false, 1])
    assert.deepEqual(await find({ documents: written(Number.NaN) }), [false, 1])
    // A later document outside the access filter must not replace the document that grants access.
    const later = makeEntry(makeDocument('bob', 'Binary/b'), 9)
    assert.deepEqual(await find({ documents: [...written(4), later] }), [false, 1])
  })

  it('finds no Binary that is absent, deleted or unreadable, or that has a securityContext', async () => {
    for (const binary of [
      undefined,
      unreachable,
      makeBinary({}, { deleted: true }),
      makeBinary({}, { parse: () => unreachable }),
      makeBinary({ securityContext: { reference: 'Patient/bob' } }),
    ])
      assert.deepEqual(await find({ binary }), [false, 1])
  })

  it('reads the members of the panels that limit Binaries', async () => {
    const access = makeAccess({ Binary: [{ panel }], DocumentReference: 'everything' })
    assert.deepEqual(await find({}, access), [true, 1])
    assert.deepEqual(await find({ members: unreachable }, access), [false, 1])
    assert.deepEqual(await find({ documents: [makeEntry(makeDocument('bob', 'Binary/b'), 6)] }, access), [
      false,
      1,
    ])
  })
})

describe('checkNamedBinaries', () => {
  const check = async (
    held: Held,
    access = ann,
    document = makeDocument('ann', 'Binary/b'),
    known: string[] = [],
  ) => {
    const { context, read } = open(held)
    const failure = await checkNamedBinaries(context, makeRequest(access), document, new Set(known))
    return [failure?.reason, read.length]
  }
  const own = makeBinary({ securityContext: { reference: 'Patient/ann' } })
  const others = makeBinary({ securityContext: { reference: 'Patient/bob' } })

  it('refuses a DocumentReference that names a Binary outside the access filter, absent or not', async () => {
    assert.deepEqual(await check({ binary: own }), [undefined, 1])
    assert.equal((await check({ binary: others }))[0], 'outside-access')
    assert.equal((await check({}))[0], 'outside-access')
    assert.equal((await check({ binary: { ...own, deleted: true } }))[0], 'outside-access')
    assert.equal((await check({ binary: unreachable }))[0], 'outside-access')
  })

  it('accepts a Binary that the caller may read, create or update', async () => {
    for (const permission of ['r', 'c', 'u']) {
      const access = makeAccess({ [`Binary.${permission}`]: ofAnn })
      assert.deepEqual(await check({ binary: own }, access), [undefined, 1], permission)
    }
    assert.deepEqual(await check({ binary: own }, makeAccess({ 'Binary.d': ofAnn })), ['outside-access', 0])
  })

  it('accepts a Binary that the caller may read through another document', async () => {
    const documents = [makeEntry(makeDocument('ann', 'Binary/b'), 6)]
    assert.equal((await check({ binary: makeBinary(), documents }))[0], undefined)
    assert.equal((await check({ binary: makeBinary() }))[0], 'outside-access')
  })

  it('accepts a Binary of the same commit without a lookup', async () => {
    assert.deepEqual(await check({}, ann, makeDocument('ann', 'Binary/b'), ['Binary/b']), [undefined, 0])
    assert.equal((await check({}, ann, makeDocument('ann', 'Binary/b'), ['Patient/b']))[0], 'outside-access')
  })

  it('checks no other type, and no caller who may read all Binaries', async () => {
    const media = { ...makeDocument('ann', 'Binary/b'), resourceType: 'Media' }
    assert.deepEqual(await check({ binary: others }, ann, media), [undefined, 0])
    assert.deepEqual(await check({ binary: others }, makeAccess({ 'Binary.r': 'everything' })), [
      undefined,
      0,
    ])
  })

  it('accepts a limited number of Binaries', async () => {
    const names = (count: number) => Array.from({ length: count }, (_, at) => `Binary/b${at}`)
    const known = names(limits.BINARIES_OF_DOCUMENT + 1)
    assert.deepEqual(
      await check({}, ann, makeDocument('ann', ...names(limits.BINARIES_OF_DOCUMENT)), known),
      [undefined, 0],
    )
    assert.deepEqual(
      await check({}, ann, makeDocument('ann', ...names(limits.BINARIES_OF_DOCUMENT + 1)), known),
      ['binaries-too-many', 0],
    )
  })
})
