import type { FastifyRequest } from 'fastify'
import { type Admitted, noAccess } from '../consent/index.ts'
import {
  acceptsJson,
  type FhirProblem,
  fail,
  type Interaction,
  isProblem,
  isPublic,
  preconditionsOf,
  preferencesOf,
  readBody,
  wantsContent,
} from '../fhir/index.ts'
import type { Asked } from './call.ts'
import { bytesOf } from './interaction-of.ts'

// What is public is answered to everybody alike, and touches nobody's data.
const nobody: Admitted = { allowed: true, decide: () => ({ allowed: true, access: noAccess, by: 'public' }) }

/** What a request asks for, decided before it is read. */
export function callOf(interaction: Interaction, request: FastifyRequest): Asked | FhirProblem {
  const { headers } = request
  const admitted = isPublic(interaction) ? nobody : request.admitted
  if (!admitted) throw new Error('Cannot decide: the caller was not admitted')
  const decision = admitted.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  const content = wantsContent(headers, interaction)
  if (!content && !acceptsJson(headers, interaction)) return fail({ problem: 'not-acceptable' })
  const read = readBody(interaction, headers, bytesOf(request))
  if (isProblem(read)) return read
  return {
    interaction,
    body: read.body,
    preconditions: preconditionsOf(headers),
    preferences: content ? { ...preferencesOf(headers), content } : preferencesOf(headers),
    access: decision.access,
    by: decision.by,
    admitted,
    requestId: String(request.id),
    connection: request.raw.socket,
    report: error => request.log.error({ err: error }, 'Entry of a batch failed'),
  }
}
