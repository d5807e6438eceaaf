import { type Failed, fail, isFailure, isRecord, parseJson } from '../../../core/index.ts'
import { applyPatch, type ExactResource, formatExact, parseExact, Work } from '../../../fhir/index.ts'
import type { Proposal } from '../../../proposals/index.ts'
import { sha256 } from '../../../store/index.ts'
import { type Person, readPerson } from '../../../web/person/index.ts'
import type { AuthUser } from '../../base/user.ts'
import { removeForeignMarks } from './marks.ts'
import { type FhirAnswer, type ProposalContext, sendAs } from './send.ts'

/** What a proposal means for the record as it is now. */
export interface PresentState {
  readonly patient: Person | undefined
  /** The resource now; undefined for a create. */
  readonly before: ExactResource | undefined
  /** The resource as signed; undefined for a delete. */
  readonly after: ExactResource | undefined
  /** The `ETag` of `before`. */
  readonly version: string | undefined
  /** Whether the record was changed after the assistant had read it. */
  readonly hasChanged: boolean
  /** Identifies what the person sees: it alone is signed. */
  readonly shown: string
}

export interface NotPresent extends Failed {
  readonly reason: 'proposal-record-hidden' | 'proposal-patch-unusable' | 'records-unavailable'
}

/** Reads the record with the rights of the person, and computes what signing would make of it. */
export async function readPresentState(
  context: ProposalContext,
  user: AuthUser,
  { id, change, patient }: Proposal,
  address: string,
): Promise<PresentState | NotPresent> {
  const { type, id: resourceId } = change
  const read = (path: string, of: string) =>
    sendAs(context, user, { path, scope: `user/${of}.rs`, purpose: 'proposal', address })
  const [found, ofPatient] = await Promise.all([
    resourceId === undefined ? undefined : read(`${type}/${resourceId}`, type),
    patient === undefined ? undefined : read(`Patient/${patient}`, 'Patient'),
  ])
  const current = resourceId === undefined ? undefined : readAnswer(found)
  const person = patient === undefined ? undefined : readAnswer(ofPatient)
  if (isFailure(current)) return current
  if (isFailure(person)) return person
  const before = current && removeVersion(current)
  const proposed = computeAfter(change, before)
  if (isFailure(proposed)) return proposed
  const after = proposed && removeForeignMarks(proposed, before, context.settings)
  const version = found?.etag
  const texts = [before, after].map(it => (it === undefined ? '' : formatExact(it)))
  return {
    patient: person && readPerson(JSON.parse(formatExact(person))),
    before,
    after,
    version,
    hasChanged: version !== change.version,
    shown: sha256(JSON.stringify([id, version, ...texts])),
  }
}

function readAnswer(answer: FhirAnswer | undefined): ExactResource | NotPresent {
  if (!answer || answer.status >= 500) return fail({ reason: 'records-unavailable' })
  const resource = answer.status === 200 && parseJson(answer.text) !== undefined && parseExact(answer.text)
  return isRecord(resource) && typeof resource.resourceType === 'string'
    ? (resource as unknown as ExactResource)
    : fail({ reason: 'proposal-record-hidden' })
}

/** The server sets version and time at every write. */
function removeVersion(resource: ExactResource): ExactResource {
  if (!isRecord(resource.meta)) return resource
  const { versionId: _version, lastUpdated: _time, ...meta } = resource.meta
  const { meta: _meta, ...content } = resource
  return { ...content, ...(Object.keys(meta).length > 0 && { meta }) } as ExactResource
}

function computeAfter(
  { action, type, id, content = 'null' }: Proposal['change'],
  before: ExactResource | undefined,
): ExactResource | undefined | NotPresent {
  const sent = parseExact(content)
  switch (action) {
    case 'delete':
      return undefined
    case 'create':
    case 'update':
      return removeVersion({
        ...(sent as ExactResource),
        resourceType: type,
        ...(id !== undefined && { id }),
      })
    case 'patch': {
      const patched = applyPatch(before, sent, new Work())
      return isFailure(patched)
        ? fail({ reason: 'proposal-patch-unusable' })
        : removeVersion(patched.value as ExactResource)
    }
  }
}
