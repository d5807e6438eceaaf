import { type ResourceReference, searchParametersOf } from '../../fhir/index.ts'
import type { Letter } from '../../scope/index.ts'
import type { Policy } from '../grant.ts'
import { hasCompartment } from '../patient-reach.ts'
import type { Limit, Reach } from '../reach.ts'
import { isOfNamedOnly, type Panel, panelOf } from './panel.ts'
import type { Rights } from './rights.ts'

// So few that each can be a limit of its own, which every server understands.
const FEW = 50
const REMEMBERED = 1000

/** What a clinician reaches by right, whatever a `user/` scope says: everything that is not of another's patient. */
export function rightsReach(rights: Rights): NonNullable<Policy['userReach']> {
  const panels = new Map<string, Panel | 'all'>()
  const panelFor = (user: ResourceReference): Panel | 'all' => {
    const key = `${user.type}/${user.id}`
    const panel = panels.get(key) ?? panelOf(rights, user)
    if (panels.size >= REMEMBERED) panels.clear()
    panels.set(key, panel)
    return panel
  }
  return (user, type, letter) => panelReach(panelFor(user), type, letter)
}

function panelReach(panel: Panel | 'all', type: string, letter: Letter): Reach {
  if (panel === 'all') return 'everything'
  if (!hasCompartment(type)) return namesPatients(type) ? [] : 'everything'
  const sole = letter === 'r' || letter === 's' ? {} : ({ sole: true } as const)
  if (isListed(panel)) return [...panel.patients].map((patient): Limit => ({ patient, ...sole }))
  return [{ panel, ...sole }]
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
  return TELLING.has(type) || searchParametersOf(type).some(({ target }) => target?.includes('Patient'))
}
