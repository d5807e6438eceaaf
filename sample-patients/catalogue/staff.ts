/** The hospital's staff. The first is the test clinician (LOGIN-3). All are invented. */
export interface StaffEntry {
  readonly prefix?: string
  readonly given: string
  readonly family: string
  readonly gender: 'female' | 'male' | 'other'
  /** SNOMED CT code and words of the occupation or specialty. */
  readonly role: readonly [code: string, display: string]
  readonly location: LocationKey
}

export const locations = {
  clinic: 'Outpatient clinics',
  emergency: 'Emergency department',
  medical: 'Medical ward',
  surgical: 'Surgical ward',
  maternity: 'Maternity and newborn unit',
  children: 'Children’s clinic',
} as const satisfies Record<string, string>

export type LocationKey = keyof typeof locations

export const staff = {
  ahmadi: {
    prefix: 'Dr.',
    given: 'Robin',
    family: 'Ahmadi',
    gender: 'other',
    role: ['17561000', 'Cardiologist'],
    location: 'clinic',
  },
  quill: {
    prefix: 'Dr.',
    given: 'Priya',
    family: 'Quill',
    gender: 'female',
    role: ['309294001', 'Accident and Emergency doctor'],
    location: 'emergency',
  },
  okoro: {
    prefix: 'Nurse',
    given: 'Sam',
    family: 'Okoro',
    gender: 'male',
    role: ['106292003', 'Professional nurse'],
    location: 'clinic',
  },
  valcourt: {
    prefix: 'Dr.',
    given: 'Inès',
    family: 'Valcourt',
    gender: 'female',
    role: ['59058001', 'General physician'],
    location: 'clinic',
  },
  lindqvist: {
    prefix: 'Dr.',
    given: 'Tomas',
    family: 'Lindqvist-Oyelaran',
    gender: 'male',
    role: ['82296001', 'Pediatrician'],
    location: 'children',
  },
  haddad: {
    prefix: 'Dr.',
    given: 'Noor',
    family: 'Haddadine',
    gender: 'female',
    role: ['80584001', 'Psychiatrist'],
    location: 'clinic',
  },
  adeyinka: {
    prefix: 'Dr.',
    given: 'Grace',
    family: 'Adeyinka',
    gender: 'female',
    role: ['11935004', 'Obstetrician'],
    location: 'maternity',
  },
  saarela: {
    prefix: 'Dr.',
    given: 'Henrik',
    family: 'Saarela',
    gender: 'male',
    role: ['304292004', 'Surgeon'],
    location: 'surgical',
  },
  donnelly: {
    prefix: 'Dr.',
    given: 'Maeve',
    family: 'Donnellan',
    gender: 'female',
    role: ['90655003', 'Geriatrics specialist'],
    location: 'medical',
  },
  mensah: {
    prefix: 'Dr.',
    given: 'Kofi',
    family: 'Mensarra',
    gender: 'male',
    role: ['41672002', 'Respiratory disease specialist'],
    location: 'clinic',
  },
  tanabe: {
    prefix: 'Dr.',
    given: 'Yuki',
    family: 'Tanabe',
    gender: 'female',
    role: ['61894003', 'Endocrinologist'],
    location: 'clinic',
  },
  whitlow: {
    given: 'Imogen',
    family: 'Whitlow',
    gender: 'female',
    role: ['46255001', 'Pharmacist'],
    location: 'clinic',
  },
} as const satisfies Record<string, StaffEntry>

export type StaffKey = keyof typeof staff
