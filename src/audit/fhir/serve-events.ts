import { isFailure } from '../../core/index.ts'
import {
  type AnyProblem,
  type BadSearch,
  type FhirProblem,
  failFor,
  type Interaction,
  type Resource,
  toMisunderstood,
  type Work,
} from '../../fhir/index.ts'
import { type Access, type AccessFilter, type FindPanelMembership, failHidden } from '../../smart/index.ts'
import type { Store } from '../../store/index.ts'
import { openEventIds } from '../trail/event-ids.ts'
import { findRecords } from '../trail/find.ts'
import { createPatientCache, isShown, searchAudit } from './search.ts'
import { toAuditEvent } from './to-audit-event.ts'

/** Serves `AuditEvent` from the trail, regardless of the server's own data or upstream. */
export interface AuditEventServer {
  serve<P extends AnyProblem>(
    asked: AuditQuestion<P>,
  ): Promise<{ readonly status: 200; readonly body: string } | FhirProblem | P>
}

interface AuditQuestion<P> {
  readonly interaction: Interaction
  readonly access: Access
  readonly panelMembers: FindPanelMembership<P>
  /** `Prefer: handling=lenient` */
  readonly lenient?: boolean
  readonly work: Work
}

export function isAboutAudit(interaction: Interaction): boolean {
  return 'type' in interaction && interaction.type === 'AuditEvent' && interaction.kind !== 'operation'
}

export function serveAuditEvents(store: Store, fhirBaseUrl: string): AuditEventServer {
  return {
    async serve<P extends AnyProblem>({
      interaction,
      access,
      panelMembers,
      lenient = false,
      work,
    }: AuditQuestion<P>) {
      switch (interaction.kind) {
        case 'read':
          return read(store, interaction.id, access.filterFor('AuditEvent', 'r'), fhirBaseUrl, panelMembers)
        case 'search-type':
        case 'search-compartment': {
          const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
          const filter = access.filterFor('AuditEvent', 's')
          const found = await searchAudit(store, {
            params: interaction.params,
            compartment,
            filter,
            panelMembers,
            lenient,
            work,
            fhirBaseUrl,
          })
          return isFailure<Resource | BadSearch | P, BadSearch | P>(found)
            ? found
            : { status: 200, body: JSON.stringify(found) }
        }
        default:
          return isReading(interaction)
            ? failUnsupported('audit-event-versions', [])
            : failUnsupported('audit-event-written', ['GET', 'HEAD'])
      }
    },
  }
}

function isReading({ kind }: Interaction): boolean {
  return kind === 'vread' || kind.startsWith('history')
}

export function auditRefusal(interaction: Interaction): FhirProblem {
  return interaction.kind === 'read' || interaction.kind.startsWith('search') || isReading(interaction)
    ? failUnsupported('audit-event-in-bundle', [])
    : failUnsupported('audit-event-written', [])
}

async function read<P extends AnyProblem>(
  store: Store,
  id: string,
  filter: AccessFilter,
  fhirBaseUrl: string,
  panelMembers: FindPanelMembership<P>,
) {
  const ids = await openEventIds(store)
  const position = ids.parse(id)
  const [record] = position ? await findRecords(store, { ids: [position.id], limit: 1 }) : []
  const resource = record && toAuditEvent(record, { fhirBaseUrl, ids })
  const known = createPatientCache(filter, panelMembers)
  const problem = record && (await known.learn([record]))
  if (problem) return problem
  if (resource && isShown(record, resource, filter, fhirBaseUrl, known))
    return { status: 200, body: JSON.stringify(resource) } as const
  return failHidden({ filterFor: () => filter }, 'r', 'AuditEvent', id)
}

function failUnsupported(
  reason: 'audit-event-versions' | 'audit-event-written' | 'audit-event-in-bundle',
  allow: readonly string[],
): FhirProblem {
  return toMisunderstood(failFor(reason), allow)
}
