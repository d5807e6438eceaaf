import { listSearchParameters, type Permission, type ResourceReference } from '../../fhir/index.ts'
import type { AccessFilter, Constraint } from '../access-filter.ts'
import type { EnforcementPolicy } from '../grant.ts'
import { hasCompartment } from '../patient-constraint.ts'
import type { AccessPolicy } from './access-policy.ts'
import { findPanel, isOfNamedOnly, type Panel } from './panel.ts'

// So few that each can be a limit of its own, which every server understands.
const FEW = 50
const REMEMBERED = 1000

/** What a clinician reaches by right, whatever a `user/` scope says: everything that is not of another's patient. */
export function createUserFilter(rights: AccessPolicy): NonNullable<EnforcementPolicy['userFilter']> {
  const panels = new Map<string, Panel | 'all'>()
  const panelFor = (user: ResourceReference): Panel | 'all' => {
    const key = `${user.type}/${user.id}`
    const panel = panels.get(key) ?? findPanel(rights, user)
    if (panels.size >= REMEMBERED) panels.clear()
    panels.set(key, panel)
    return panel
  }
  return (user, type, permission) => findPanelFilter(panelFor(user), type, permission)
}

function findPanelFilter(panel: Panel | 'all', type: string, permission: Permission): AccessFilter {
  if (panel === 'all') return 'everything'
  if (!hasCompartment(type)) return namesPatients(type) ? [] : 'everything'
  const exclusive = permission === 'r' || permission === 's' ? {} : ({ exclusive: true } as const)
  if (isListed(panel)) return [...panel.patients].map((patient): Constraint => ({ patient, ...exclusive }))
  return [{ panel, ...exclusive }]
}

function isListed(panel: Panel): boolean {
  const { size } = panel.patients
  return isOfNamedOnly(panel) && size > 0 && size <= FEW
}

// A Bundle and Parameters hold anything; the others refer to anything, or to patients by what no search parameter tells.
const TELLING: ReadonlySet<string> = new Set([
  'BiologicallyDerivedProduct',
  'Bundle',
  'DeviceMetric',
  'EnrollmentResponse',
  'Linkage',
  'MessageHeader',
  'Parameters',
  'PaymentNotice',
  'PaymentReconciliation',
  'Subscription',
  'VerificationResult',
])

/** Types that are in nobody's compartment and yet may tell of patients, as a Group does, which lists them. */
function namesPatients(type: string): boolean {
  return TELLING.has(type) || listSearchParameters(type).some(({ target }) => target?.includes('Patient'))
}
