import { type AuditKind, formatRepeats, type KeptRecord } from '../../../audit/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import { readDetails } from '../../base/audit.ts'
import type { KnownNames } from '../../pages/parts/explain/describe.ts'
import { KINDS } from './filters.ts'

export function describeEvent({
  kind,
  interaction,
  resource_type: type,
  request,
  repeats,
  details,
}: KeptRecord): Html {
  const { tool } = readDetails(details)
  const name = KINDS[kind as AuditKind] ?? kind
  const detail =
    kind === 'admin'
      ? request !== null && html`<code>${request}</code>`
      : [interaction === 'misunderstood' ? 'not understood' : interaction, type]
          .filter(part => part !== null)
          .join(' ')
  return html`${name}${detail && html`: ${detail}`}${tool !== undefined && html` (tool <code>${tool}</code>)`}${repeats !== null && `, ${formatRepeats(repeats)}`}`
}

export function describeUser(
  { subject, fhir_user, method, address }: KeptRecord,
  names: KnownNames,
): string | undefined {
  const named = (subject === null ? undefined : names.user(subject)) ?? fhir_user ?? subject
  return named ?? (method === 'sallyport' ? address : undefined) ?? undefined
}
