import type { FastifyRequest } from 'fastify'
import {
  acceptsJson,
  type FhirProblem,
  fail,
  type Interaction,
  isProblem,
  isPublic,
  readBody,
  readPreconditions,
  readPreferences,
  wantsContent,
} from '../../fhir/index.ts'
import { type Authenticated, noAccess } from '../../smart/index.ts'
import type { FhirRequest } from '../request.ts'
import { readBytes } from './find-interaction.ts'

// Public interactions respond to everybody alike, and contain nobody's data.
const nobody: Authenticated = {
  allowed: true,
  decide: () => ({ allowed: true, access: noAccess, by: 'public' }),
}

/** The request, allowed before its body is parsed. */
export function readRequest(interaction: Interaction, request: FastifyRequest): FhirRequest | FhirProblem {
  const { headers } = request
  const authenticated = isPublic(interaction) ? nobody : request.authenticated
  if (!authenticated) throw new Error('Cannot decide: the caller is not authenticated')
  const decision = authenticated.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  const content = wantsContent(headers, interaction)
  if (!content && !acceptsJson(headers, interaction)) return fail({ problem: 'not-acceptable' })
  const read = readBody(interaction, headers, readBytes(request))
  // Otherwise the bytes would stay in memory beside what was read from them until the response has gone out.
  request.body = undefined
  if (isProblem(read)) return read
  return {
    interaction,
    body: read.body,
    preconditions: readPreconditions(headers),
    preferences: content ? { ...readPreferences(headers), content } : readPreferences(headers),
    access: decision.access,
    by: decision.by,
    authenticated,
    requestId: String(request.id),
    connection: request.raw.socket,
    report: error => request.log.error({ err: error }, 'Entry of a batch failed'),
  }
}
