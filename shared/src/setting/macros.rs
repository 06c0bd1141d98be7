//! The declaration itself.

/// Declares a type of settings. Each field has its help above it, then its type, its default, after `=>` what it may be
/// ([`kinds`](crate::setting::kinds)), and after `;` its [`Reach`](crate::setting::Reach) and its
/// [`Sensitivity`](crate::setting::Sensitivity):
///
/// ```
/// muster_shared::settings! {
///     /// How loud it is.
///     pub struct Sound {
///         /// How loud it is at first.
///         pub volume: u32 = 5 => whole(0, 11); Project Harmless,
///     }
/// }
/// assert_eq!(Sound::default().volume, 5);
/// assert_eq!(Sound::SETTINGS[0].help(), "How loud it is at first.");
/// ```
///
/// A group of settings has only its type: its default and its settings are those of the type.
/// A setting without them does not compile. Attributes of a group override those of its settings.
///
/// ```compile_fail
/// muster_shared::settings! {
///     /// How loud it is.
///     pub struct Sound {
///         /// How loud it is at first.
///         pub volume: u32 = 5 => whole(0, 11),
///     }
/// }
/// ```
///
/// The type is `Debug`, `Clone`, `Serialize` and `Deserialize`. It has defaults and denies unknown fields unless other options
/// of serde stand in brackets before it: `[default]`. Out of it come the type, its `Default`, and the table `SETTINGS`. A
/// `const struct` has the constant `USUAL` with the defaults as well; then each default must be constant.
#[macro_export]
macro_rules! settings {
    ($(#[$($about:tt)*])* $vis:vis const struct $($rest:tt)*) => {
        $crate::settings!([default, deny_unknown_fields] $(#[$($about)*])* $vis const struct $($rest)*);
    };
    ($(#[$($about:tt)*])* $vis:vis struct $($rest:tt)*) => {
        $crate::settings!([default, deny_unknown_fields] $(#[$($about)*])* $vis struct $($rest)*);
    };
    (
        [$($serde:ident),+] $(#[$($about:tt)*])*
        $vis:vis const struct $name:ident { $($fields:tt)* }
    ) => {
        $crate::settings!([$($serde),+] $(#[$($about)*])* $vis struct $name { $($fields)* });

        impl $name {
            /// What holds where nothing is said.
            $vis const USUAL: Self = $crate::settings!(@values { $($fields)* });
        }
    };
    (
        [$($serde:ident),+] $(#[$($about:tt)*])*
        $vis:vis struct $name:ident { $($fields:tt)* }
    ) => {
        $crate::settings!(@type [$($serde),+] [$(#[$($about)*])*] [$vis] $name { $($fields)* });

        impl Default for $name {
            fn default() -> Self {
                $crate::settings!(@values { $($fields)* })
            }
        }
    };
    (@values {
        $($(#[$($attr:tt)*])* $of:vis $field:ident: $type:ty $(= $default:expr => $takes:expr $(; $reach:ident $sensitivity:ident)?)?),+ $(,)?
    }) => {{
        #[allow(unused_imports)]
        use $crate::setting::kinds::*;
        Self { $($field: $crate::setting_default!($type $(, $default)?)),+ }
    }};
    (@type [$($serde:ident),+] [$(#[$($about:tt)*])*] [$vis:vis] $name:ident {
        $($(#[$($attr:tt)*])* $of:vis $field:ident: $type:ty $(= $default:expr => $takes:expr $(; $reach:ident $sensitivity:ident)?)?),+ $(,)?
    }) => {
        #[derive(Debug, Clone, ::serde::Serialize, ::serde::Deserialize)]
        #[serde($($serde),+)]
        $(#[$($about)*])*
        $vis struct $name {
            $($(#[$($attr)*])* $of $field: $type),+
        }

        impl $name {
            /// What can be set of it, in order.
            $vis const SETTINGS: &'static [$crate::setting::Setting] = {
                #[allow(unused_imports)]
                use $crate::setting::kinds::*;
                &[$($crate::setting::Setting {
                    field: stringify!($field),
                    doc: $crate::setting_doc!([] $([$($attr)*])*),
                    default: || {
                        let usual: $type = $crate::setting_default!($type $(, $default)?);
                        $crate::setting::value_of(&usual)
                    },
                    takes: $crate::setting_takes!($type $(, $takes $(, $reach $sensitivity)?)?),
                }),+]
            };
        }

        const _: () = $crate::setting::check($name::SETTINGS);
    };
}

/// The default of a setting, or of a group.
#[doc(hidden)]
#[macro_export]
macro_rules! setting_default {
    ($type:ty) => {
        <$type>::default()
    };
    ($type:ty, $default:expr) => {
        $default
    };
}

/// What a setting may be, or the settings of a group.
#[doc(hidden)]
#[macro_export]
macro_rules! setting_takes {
    ($type:ty) => {
        $crate::setting::kinds::group(<$type>::SETTINGS)
    };
    ($type:ty, $takes:expr $(, $reach:ident $sensitivity:ident)?) => {
        $takes$(.attributed($crate::setting::Reach::$reach, $crate::setting::Sensitivity::$sensitivity))?
    };
}

/// The lines of help among attributes, in one text.
#[doc(hidden)]
#[macro_export]
macro_rules! setting_doc {
    ([$($line:literal)*]) => { concat!($($line),*) };
    ([$($line:literal)*] [doc = $next:literal] $($rest:tt)*) => {
        $crate::setting_doc!([$($line)* $next] $($rest)*)
    };
    ([$($line:literal)*] [$($other:tt)*] $($rest:tt)*) => { $crate::setting_doc!([$($line)*] $($rest)*) };
}
