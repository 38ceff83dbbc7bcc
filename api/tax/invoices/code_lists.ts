/**
 * The code lists of EN 16931 (release 17 of its code lists) and Peppol BIS Billing 3.0 that our invoices use,
 * as far as they go: what is not in them, a receiver refuses.
 */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** ISO 4217: BR-CL-04, PEPPOL-EN16931-CL007. */
const currencies = words(`
  AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
  CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL
  HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA
  MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
  RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
  USN UYI UYU UYW UZS VED VES VND VUV WST XAF XAG XAU XBA XBB XBC XBD XCD XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR
  ZMW ZWG`);

/** ISO 3166-1 with 1A (Kosovo) and XI (Northern Ireland): BR-CL-14. */
const countries = words(`
  1A AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA
  CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB
  GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG
  KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV
  MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB
  SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US
  UY UZ VA VC VE VG VI VN VU WF WS XI YE YT ZA ZM ZW`);

/** UNTDID 4461: BR-CL-16. */
const paymentMeans = words(`
  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42
  43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 74 75 76 77 78 91 92 93 94 95 96
  97 98 ZZZ`);

/** VATEX: BR-CL-22. */
const vatExemptions = words(`
  VATEX-EU-79-C VATEX-EU-132 VATEX-EU-132-1A VATEX-EU-132-1B VATEX-EU-132-1C VATEX-EU-132-1D VATEX-EU-132-1E
  VATEX-EU-132-1F VATEX-EU-132-1G VATEX-EU-132-1H VATEX-EU-132-1I VATEX-EU-132-1J VATEX-EU-132-1K VATEX-EU-132-1L
  VATEX-EU-132-1M VATEX-EU-132-1N VATEX-EU-132-1O VATEX-EU-132-1P VATEX-EU-132-1Q VATEX-EU-135-1 VATEX-EU-143
  VATEX-EU-143-1A VATEX-EU-143-1B VATEX-EU-143-1C VATEX-EU-143-1D VATEX-EU-143-1E VATEX-EU-143-1F VATEX-EU-143-1FA
  VATEX-EU-143-1G VATEX-EU-143-1H VATEX-EU-143-1I VATEX-EU-143-1J VATEX-EU-143-1K VATEX-EU-143-1L VATEX-EU-144
  VATEX-EU-146-1E VATEX-EU-148 VATEX-EU-148-A VATEX-EU-148-B VATEX-EU-148-C VATEX-EU-148-D VATEX-EU-148-E
  VATEX-EU-148-F VATEX-EU-148-G VATEX-EU-151 VATEX-EU-151-1A VATEX-EU-151-1AA VATEX-EU-151-1B VATEX-EU-151-1C
  VATEX-EU-151-1D VATEX-EU-151-1E VATEX-EU-153 VATEX-EU-159 VATEX-EU-309 VATEX-EU-AE VATEX-EU-D VATEX-EU-F VATEX-EU-G
  VATEX-EU-I VATEX-EU-IC VATEX-EU-J VATEX-EU-O VATEX-FR-298SEXDECIESA VATEX-FR-AE VATEX-FR-CGI261-1 VATEX-FR-CGI261-2
  VATEX-FR-CGI261-3 VATEX-FR-CGI261-4 VATEX-FR-CGI261-5 VATEX-FR-CGI261-7 VATEX-FR-CGI261-8 VATEX-FR-CGI261A
  VATEX-FR-CGI261B VATEX-FR-CGI261C-1 VATEX-FR-CGI261C-2 VATEX-FR-CGI261C-3 VATEX-FR-CGI261D-1 VATEX-FR-CGI261D-1BIS
  VATEX-FR-CGI261D-2 VATEX-FR-CGI261D-3 VATEX-FR-CGI261D-4 VATEX-FR-CGI261E-1 VATEX-FR-CGI261E-2 VATEX-FR-CGI275
  VATEX-FR-CGI277A VATEX-FR-CGI295 VATEX-FR-CNWVAT VATEX-FR-FRANCHISE`);

/** Electronic address schemes (EAS) that Peppol routes, as of its release 2026.5: PEPPOL-EN16931-CL008. */
const peppolAddressSchemes = words(`
  0002 0007 0009 0060 0088 0096 0097 0106 0130 0135 0142 0151 0183 0184 0188 0190 0191 0192 0195 0196 0198 0199
  0200 0201 0204 0208 0209 0210 0211 0216 0218 0221 0225 0230 0235 0240 0242 0244 0245 0246 0248 9910 9913 9914
  9915 9918 9919 9920 9922 9923 9924 9925 9926 9927 9928 9929 9930 9931 9932 9933 9934 9935 9936 9937 9938 9939
  9940 9941 9942 9943 9944 9945 9946 9947 9948 9949 9950 9951 9952 9953 9957 9959`);
/** EAS beyond those: BR-CL-25. */
const otherAddressSchemes = words(`
  0037 0147 0154 0158 0170 0177 0193 0194 0202 0203 0205 0212 0213 0215 0217 0219 0220 AN AQ AS
  AU EM`);

/** Assigned ISO 6523 codes are consecutive but for these: BR-CL-11. */
const unassignedIcd = words("0092 0103 0181 0182");

/** UN/ECE Recommendation 20, as far as lines of ours are measured: nights, and one of anything. BR-CL-23. */
const units = words("DAY C62");

export const isInvoiceCurrency = (code: string): boolean => currencies.has(code);
export const isCountry = (code: string): boolean => countries.has(code);
export const isPaymentMeans = (code: string): boolean => paymentMeans.has(code);
export const isVatExemptionCode = (code: string): boolean => vatExemptions.has(code.toUpperCase());
export const isPeppolAddressScheme = (code: string): boolean => peppolAddressSchemes.has(code);
export const isAddressScheme = (code: string): boolean =>
  peppolAddressSchemes.has(code) || otherAddressSchemes.has(code);
export const isUnit = (code: string): boolean => units.has(code);

export function isRegistrationScheme(code: string): boolean {
  return /^\d{4}$/.test(code) && code >= "0002" && code <= "0248" && !unassignedIcd.has(code);
}

/** Member states of the Union; Greece by its country code. */
const unionCountries = words("AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK");
/** Others whose standards body has made EN 16931 a national standard, or whose law refers to it. */
const otherStandardCountries = words("CH GB IS LI MK NO RS TR XI");

export const isUnionCountry = (code: string): boolean => unionCountries.has(code);
export const hasEn16931 = (code: string): boolean => unionCountries.has(code) || otherStandardCountries.has(code);
