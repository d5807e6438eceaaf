/** Vaccines by CVX code, and when they are due: months of age for children, years for adults. */
export interface VaccineEntry {
  readonly cvx: string
  readonly display: string
  readonly months?: readonly number[]
  readonly years?: readonly number[]
  /** In use from this year, and until that one. */
  readonly from?: number
  readonly until?: number
  /** Every autumn. */
  readonly seasonal?: true
}

export const vaccines = {
  hepatitisB: { cvx: '08', display: 'Hep B, adolescent or pediatric', months: [0, 1, 6] },
  rotavirus: { cvx: '119', display: 'rotavirus, monovalent', months: [2, 4] },
  dtap: { cvx: '20', display: 'DTaP', months: [2, 4, 6, 15, 48] },
  hib: { cvx: '49', display: 'Hib (PRP-OMP)', months: [2, 4, 12] },
  pneumococcalChild: {
    cvx: '215',
    display: 'Pneumococcal conjugate PCV15, polysaccharide CRM197 conjugate, adjuvant, PF',
    months: [2, 4, 6, 12],
    from: 2023,
  },
  pneumococcal13: {
    cvx: '133',
    display: 'Pneumococcal conjugate PCV 13',
    months: [2, 4, 6, 12],
    from: 2010,
    until: 2022,
  },
  polio: { cvx: '10', display: 'IPV', months: [2, 4, 6, 48] },
  mmr: { cvx: '03', display: 'MMR', months: [12, 48] },
  varicella: { cvx: '21', display: 'varicella', months: [12, 48] },
  hepatitisA: { cvx: '83', display: 'Hep A, ped/adol, 2 dose', months: [12, 18] },
  tdap: { cvx: '115', display: 'Tdap', years: [11] },
  hpv: { cvx: '165', display: 'HPV9', years: [11, 12], from: 2015 },
  meningococcal: { cvx: '114', display: 'meningococcal MCV4P', years: [11, 16] },
  tetanus: {
    cvx: '113',
    display: 'Td (adult), 5 Lf tetanus toxoid, preservative free, adsorbed',
    years: [21, 31, 41, 51, 61, 71, 81, 91],
  },
  zoster: { cvx: '187', display: 'zoster recombinant', years: [50, 51], from: 2018 },
  pneumococcal: { cvx: '33', display: 'pneumococcal polysaccharide PPV23', years: [65] },
  influenza: { cvx: '140', display: 'Influenza, split virus, trivalent, PF', seasonal: true },
} as const satisfies Record<string, VaccineEntry>
