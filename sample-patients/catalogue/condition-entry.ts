import type { MedicineKey } from './medicines.ts'
import type { LabKey, PanelKey } from './panels.ts'
import type { ProcedureKey } from './procedures.ts'
import type { ServiceKey } from './services.ts'
import type { SurveyKey } from './vitals.ts'

/** A condition and what usually follows from it. */
export interface ConditionEntry {
  readonly snomed: string
  readonly display: string
  readonly icd10?: string
  readonly category: 'problem-list-item' | 'encounter-diagnosis' | 'health-concern'
  /** Years of age at which it begins. */
  readonly onset: readonly [from: number, to: number]
  readonly sex?: 'female' | 'male'
  /** How many of those who are old enough have it. */
  readonly share: number
  /** Acute: it is over after so many days. */
  readonly lasts?: readonly [from: number, to: number]
  /** Where it is found, and where it is followed. */
  readonly found: ServiceKey
  readonly followed?: ServiceKey
  /** Days between two follow-ups. */
  readonly every?: number
  /** One of each list is prescribed; where the first choice is changed later, the other stays as stopped. */
  readonly treated?: readonly (readonly [MedicineKey, ...MedicineKey[]])[]
  readonly panels?: readonly PanelKey[]
  readonly labs?: readonly LabKey[]
  readonly surveys?: readonly SurveyKey[]
  readonly procedures?: readonly ProcedureKey[]
  /** What often comes with it, later. */
  readonly brings?: readonly (readonly [condition: string, probability: number])[]
  /** Fever while it lasts, in degrees over normal. */
  readonly fever?: number
}
