import { randomUUID } from 'node:crypto'
import { isFailure, isRecord } from '../../core/index.ts'
import {
  findJsonExcess,
  type Interaction,
  mayWrite,
  misunderstand,
  parseEntries,
  parseExact,
  runAtOnce,
} from '../../fhir/index.ts'
import { buildUrl } from '../bundle-json.ts'
import type { FhirRequest } from '../request.ts'
import { type Failure, failRefused } from '../response.ts'

/**
 * `X-Provenance` (R4 provenance.html#header): the write becomes a transaction that also creates the Provenance, so that each
 * of the two is decided, checked and recorded as any other write. The new version is added to its targets.
 */
export function addProvenance(
  request: FhirRequest,
  header: string | undefined,
  baseUrl: string,
): FhirRequest | Failure {
  const { interaction, authenticated, preconditions, work } = request
  if (header === undefined || !mayWrite(interaction)) return request
  const write = findWriteUrl(interaction)
  if (!write) return UNSUPPORTED
  // A transaction holds the resource as a whole.
  if (request.content) return STREAMED
  const provenance = parseProvenance(header)
  if (isFailure(provenance)) return provenance
  const decision = authenticated.decide({ kind: 'bundle' }, work)
  if (!decision.allowed) return failRefused(decision)
  const fullUrl = `urn:uuid:${randomUUID()}`
  const target = [...provenance.target, { reference: fullUrl }]
  const { ifMatch, ifNoneMatch } = preconditions
  const entry = [
    { fullUrl, resource: request.body, request: { ...write, ifMatch, ifNoneMatch } },
    { resource: { ...provenance, target }, request: { method: 'POST', url: 'Provenance' } },
  ]
  const body = { resourceType: 'Bundle', type: 'transaction', entry }
  return {
    ...request,
    interaction: { kind: 'bundle' },
    body,
    entries: runAtOnce(parseEntries(body, baseUrl, work)),
    preconditions: { ifMatch: undefined, ifNoneMatch: undefined, ifModifiedSince: undefined },
    access: decision.access,
    by: decision.by,
    isComposed: true,
  }
}

/** The method and URL of a write that certainly makes a new version; undefined for any other interaction. */
function findWriteUrl(
  interaction: Interaction,
): { readonly method: string; readonly url: string } | undefined {
  switch (interaction.kind) {
    case 'create':
      return interaction.ifNoneExist ? undefined : { method: 'POST', url: interaction.type }
    case 'update':
      return { method: 'PUT', url: `${interaction.type}/${interaction.id}` }
    case 'update-conditional':
      return { method: 'PUT', url: buildUrl(interaction.type, interaction.params) }
    default:
      return undefined
  }
}

const UNSUPPORTED = misunderstand('provenance-unsupported')

const STREAMED = misunderstand('provenance-of-stream')

const UNREADABLE = misunderstand('provenance-malformed')

// Clients differ in the encoding of other characters in a header, and the server cannot know it.
const ASCII = /^[\t\x20-\x7e]*$/

function parseProvenance(header: string): { readonly target: readonly unknown[] } | Failure {
  try {
    const value = !ASCII.test(header) || findJsonExcess(header) ? undefined : parseExact(header)
    if (!isRecord(value) || value.resourceType !== 'Provenance') return UNREADABLE
    const { target = [] } = value
    return Array.isArray(target) ? { ...value, target } : UNREADABLE
  } catch {
    return UNREADABLE
  }
}
