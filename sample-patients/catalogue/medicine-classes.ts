import type { ConditionKey } from './conditions.ts'
import type { MedicineKey } from './medicines.ts'

export type MedicineClass =
  | 'renin-angiotensin'
  | 'beta-blocker'
  | 'statin'
  | 'ssri'
  | 'nsaid'
  | 'anticoagulant'
  | 'antiplatelet'
  | 'penicillin'
  | 'inhaled-steroid'
  | 'reliever'
  | 'antihistamine'
  | 'metformin'

/** Two medicines of one class are not given together. */
export const medicineClasses: Readonly<Partial<Record<MedicineKey, MedicineClass>>> = {
  ramipril: 'renin-angiotensin',
  lisinopril: 'renin-angiotensin',
  losartan: 'renin-angiotensin',
  bisoprolol: 'beta-blocker',
  metoprolol: 'beta-blocker',
  atorvastatin: 'statin',
  atorvastatin40: 'statin',
  simvastatin: 'statin',
  sertraline: 'ssri',
  escitalopram: 'ssri',
  fluoxetine: 'ssri',
  ibuprofen: 'nsaid',
  naproxen: 'nsaid',
  apixaban: 'anticoagulant',
  warfarin: 'anticoagulant',
  aspirin: 'antiplatelet',
  clopidogrel: 'antiplatelet',
  amoxicillin: 'penicillin',
  amoxicillinSuspension: 'penicillin',
  fluticasoneInhaled: 'inhaled-steroid',
  fluticasoneSalmeterol: 'inhaled-steroid',
  albuterol: 'reliever',
  loratadine: 'antihistamine',
  cetirizine: 'antihistamine',
  metformin: 'metformin',
  metforminModified: 'metformin',
}

/** What a careful prescriber keeps apart from a class: other classes, conditions and allergies. */
export interface Caution {
  readonly classes?: readonly MedicineClass[]
  readonly conditions?: readonly ConditionKey[]
  readonly allergies?: readonly string[]
}

export const cautions: Readonly<Partial<Record<MedicineClass, Caution>>> = {
  penicillin: { allergies: ['penicillin'] },
  nsaid: {
    classes: ['anticoagulant', 'antiplatelet', 'renin-angiotensin'],
    conditions: ['chronicKidneyDisease', 'heartFailure', 'pregnancy', 'asthma'],
    allergies: ['aspirin'],
  },
  antiplatelet: { classes: ['anticoagulant', 'nsaid'], allergies: ['aspirin'] },
  anticoagulant: { classes: ['antiplatelet', 'nsaid'] },
  'renin-angiotensin': { conditions: ['pregnancy'], classes: ['nsaid'] },
  statin: { conditions: ['pregnancy'] },
  'beta-blocker': { conditions: ['asthma'] },
}
