import { outcome } from '../../../fhir/index.ts'
import { type Answer, versionOf } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import type { Stored } from '../repository/stored.ts'
import { judgeOf, reachesStored } from '../within.ts'

/**
 * The answer to a write: the resource, unless the caller prefers less or may not read it (a write without read
 * permission is answered with the minimum).
 */
export function written(context: Context, call: Call, stored: Stored, status: 200 | 201): Answer {
  const location = `${context.baseUrl}/${stored.type}/${stored.id}/_history/${stored.version}`
  const answer = { status, version: versionOf(stored), location }
  switch (call.preferences.answer) {
    case 'minimal':
      return answer
    case 'OperationOutcome':
      return { ...answer, body: JSON.stringify(done(status)) }
    case 'representation':
      return reachesStored(judgeOf(context, call), 'r', stored) ? { ...answer, body: stored.content } : answer
  }
}

function done(status: 200 | 201): object {
  const { resourceType, issue } = outcome('informational', status === 201 ? 'Created' : 'Updated')
  return { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }
}
